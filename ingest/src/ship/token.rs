//! The token that whoever sends rows shows to whoever takes them: a file with one line.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::IngestError;

/// Bytes of a file with a token, at most: a larger one is some other file.
const BYTES_MAX: u64 = 4_096;

/// The token in the file that `option` names.
///
/// # Errors
/// [`IngestError::Token`] for a file that is not there, cannot be read, or holds no token.
pub fn token(path: &Path, option: &'static str) -> Result<String, IngestError> {
    let refuse =
        |reason: String| IngestError::Token { option, path: path.display().to_string(), reason };
    let read = || {
        let found = std::fs::metadata(path)?;
        if found.len() > BYTES_MAX {
            return Ok(Err(format!("it has {} bytes; at most {BYTES_MAX} are read", found.len())));
        }
        Ok(Ok(std::fs::read(path)?))
    };
    let bytes = read().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => refuse("there is no such file".into()),
        _ => refuse(format!("it could not be read: {error}")),
    })?;
    let text = String::from_utf8(bytes.map_err(refuse)?);
    let text = text.map_err(|_| refuse("it is no text".into()))?;
    match text.trim() {
        "" => Err(refuse("it is empty".into())),
        token if token.chars().all(|c| c.is_ascii_graphic()) => Ok(token.to_owned()),
        _ => Err(refuse("a token is one line of letters, digits and signs of ASCII".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_token_is_refused_with_its_name_its_option_and_a_way_out() {
        // Breaks when one command tells of a missing token what another does not.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let told = |reason: &str| {
            let error = token(&path, "--token-file").unwrap_err();
            let wanted = format!("no token in `{}`, which --token-file names: ", path.display());
            assert_eq!(error.to_string(), format!("{wanted}{reason}"));
            let hint = error.hint().unwrap();
            assert!(hint.contains("openssl rand -hex 32 > "), "{hint}");
        };
        told("there is no such file");
        for (text, reason) in [
            (&b" \n"[..], "it is empty"),
            (b"a b", "a token is one line of letters, digits and signs of ASCII"),
            (b"a\nb", "a token is one line of letters, digits and signs of ASCII"),
            (b"\xff", "it is no text"),
            (&[b'x'; 4_097], "it has 4097 bytes; at most 4096 are read"),
        ] {
            std::fs::write(&path, text).unwrap();
            told(reason);
        }
        for text in [&b"abc\n"[..], &[b'x'; 4_096]] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(token(&path, "--token-file").unwrap().as_bytes(), text.trim_ascii());
        }
    }
}
