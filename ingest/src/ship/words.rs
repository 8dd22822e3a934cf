//! Why a server could not be reached, in words: which side, what is likely, and the way out.

use std::error::Error;
use std::io;

use rustls::CertificateError;
use tonic::{Code, Status};

use super::settings::ShipSettings;
use crate::source::text::plain;

/// Why there is no connection, or why it broke before there was an answer.
pub(super) fn of_connection(error: &(dyn Error + 'static), settings: &ShipSettings) -> String {
    let tls = settings.tls();
    for cause in causes(error) {
        if let Some(error) = cause.downcast_ref::<rustls::Error>() {
            return of_tls(error, settings);
        }
        let Some(error) = cause.downcast_ref::<io::Error>() else { continue };
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return of_tls(error, settings);
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => return "nobody listens there".to_owned(),
            io::ErrorKind::UnexpectedEof if tls => {
                return format!("it ended the connection in the TLS handshake; {}", plain_door());
            }
            _ => {}
        }
    }
    // The innermost says what happened; the others say through whom it passed.
    let last = causes(error).last().map(ToString::to_string).unwrap_or_default();
    plain(&last)
}

/// Why a call was not answered as it should have been. `answered` tells whether this server has
/// ever answered.
pub(super) fn of_call(status: &Status, settings: &ShipSettings, answered: bool) -> String {
    let said = plain(status.message());
    match (status.code(), &settings.token_file) {
        (Code::Unauthenticated, Some(path)) => {
            format!("it does not know the token in `{}`: {said}", path.display())
        }
        (Code::Unauthenticated, None) => {
            format!("it asks for a token: {said}; name its file with --token-file")
        }
        (Code::Unimplemented, _) => format!("it takes no rows: {said}"),
        (Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled, _) => {
            match status.source() {
                // What the server said itself has no cause here.
                None => said,
                Some(cause) => {
                    let why = of_connection(cause, settings);
                    match answered || settings.tls() {
                        true => why,
                        false => format!(
                            "no answer in HTTP/2 ({why}); if it speaks TLS, send to \
                             `grpc+tls://HOST:PORT`"
                        ),
                    }
                }
            }
        }
        (code, _) => format!("{said} ({})", code.description()),
    }
}

fn plain_door() -> &'static str {
    "if it speaks no TLS, send to `grpc://HOST:PORT`"
}

fn of_tls(error: &rustls::Error, settings: &ShipSettings) -> String {
    let host = settings.host().unwrap_or_else(|| "it".to_owned());
    match error {
        rustls::Error::InvalidCertificate(why) => of_certificate(why, &host, settings),
        rustls::Error::InvalidMessage(_) => {
            format!("it answers, and not in TLS; {}", plain_door())
        }
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => {
            format!("it broke off the TLS handshake: {}", plain(&error.to_string().to_lowercase()))
        }
        other => format!("TLS could not be spoken with it: {}", plain(&other.to_string())),
    }
}

fn of_certificate(why: &CertificateError, host: &str, settings: &ShipSettings) -> String {
    let told = format!("{why:?}");
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            match &settings.ca_file {
                Some(path) => format!(
                    "its certificate is not trusted: it is signed by none of those in `{}`, which \
                     --ca-file names",
                    path.display()
                ),
                None => "its certificate is not trusted: it is signed by none that this system \
                         knows; name the file of its signer with --ca-file"
                    .to_owned(),
            }
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "its certificate is for another name than `{host}`: send to a name that stands in \
                 it, or have it made for this one"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired by the clock here: the server needs a new one".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet by the clock here: see whether that is right"
                .to_owned()
        }
        _ if told.contains("CaUsedAsEndEntity") => {
            "its certificate is one for signing others (CA:TRUE): the server needs one of its own"
                .to_owned()
        }
        other => format!("its certificate cannot be used: {}", plain(&other.to_string())),
    }
}

/// An error and what caused it, the outermost first.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn Error + 'static) = *error;
        error.source()
    })
}
