//! Who may hand rows in: whoever has the token in a file.

use std::path::{Path, PathBuf};

use loadline_ingest::ship::token;

use crate::failure::Failure;

/// A token, read from its file at every question: it can be replaced while the program runs.
#[derive(Debug, Clone)]
pub struct Token {
    path: PathBuf,
    /// What names the file.
    option: &'static str,
}

/// Why somebody is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnedAway {
    /// The file cannot be read, or holds nothing: nobody is known.
    NoToken(String),
    /// No token was given, or another.
    Stranger,
}

impl Token {
    /// The token in `path`, which need not be there yet; `option` is what names it.
    #[must_use]
    pub fn in_file(path: &Path, option: &'static str) -> Self {
        Self { path: path.to_owned(), option }
    }

    /// The same, of a file that must hold a token now; `option` is what names it.
    ///
    /// # Errors
    /// A file that cannot be read or holds no token.
    pub fn open(path: &Path, option: &'static str) -> Result<Self, Failure> {
        token(path, option)?;
        Ok(Self { path: path.to_owned(), option })
    }

    /// Whether the value of `Authorization` holds it.
    ///
    /// # Errors
    /// [`TurnedAway`].
    pub fn check(&self, authorization: Option<&str>) -> Result<(), TurnedAway> {
        let token = token(&self.path, self.option);
        let token = token.map_err(|error| TurnedAway::NoToken(error.to_string()))?;
        // The name of the scheme is written in any case (RFC 9110, 11.1).
        let given = authorization.and_then(|text| text.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let given = given.map(|(_, given)| given);
        match given.is_some_and(|given| same(given.trim().as_bytes(), token.as_bytes())) {
            true => Ok(()),
            false => Err(TurnedAway::Stranger),
        }
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_of_the_file_is_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let missing = Token::open(&path, "--token-file").unwrap_err().to_string();
        assert!(missing.contains("which --token-file names: there is no such file"), "{missing}");
        assert!(missing.contains("hint: make one: `openssl rand"), "{missing}");
        std::fs::write(&path, " \n").unwrap();
        let empty = Token::open(&path, "--token-file").unwrap_err().to_string();
        assert!(empty.contains("it is empty"), "{empty}");
        let token = Token::in_file(&path, "--token-file");
        assert!(matches!(token.check(Some("Bearer ")), Err(TurnedAway::NoToken(_))));
        std::fs::write(&path, "abc\n").unwrap();
        // Breaks when a client that writes the scheme in lower case is turned away.
        for right in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(token.check(Some(right)), Ok(()), "{right}");
        }
        let wrong = ["", "abc", "Bearer", "Bearer ab", "Bearer abcd", "Basic abc", "Bearerabc"];
        for wrong in wrong.map(Some).into_iter().chain([None]) {
            assert_eq!(token.check(wrong), Err(TurnedAway::Stranger), "{wrong:?}");
        }
    }
}
