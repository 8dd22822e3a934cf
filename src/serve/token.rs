//! Who may hand rows in: whoever has the token in a file.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A token, read from its file at every question: it can be replaced while the program runs.
#[derive(Debug, Clone)]
pub struct Token(PathBuf);

/// Why somebody is turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnedAway {
    /// The file cannot be read, or holds nothing: nobody is known.
    NoToken(String),
    /// No token was given, or another.
    Stranger,
}

impl Token {
    /// The token in `path`, which need not be there yet.
    #[must_use]
    pub fn in_file(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The same, of a file that must be there now.
    ///
    /// # Errors
    /// A file that cannot be read or holds no token.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let token = Self::in_file(path);
        token.read().map_err(|reason| {
            Failure::new(reason).hint("make one: `openssl rand -hex 32 > FILE; chmod 600 FILE`")
        })?;
        Ok(token)
    }

    fn read(&self) -> Result<String, String> {
        let path = self.0.display();
        let text = std::fs::read_to_string(&self.0);
        let text = text.map_err(|error| format!("could not read `{path}`: {error}"))?;
        match text.trim() {
            "" => Err(format!("`{path}` holds no token")),
            token => Ok(token.to_owned()),
        }
    }

    /// Whether the value of `Authorization` holds it.
    ///
    /// # Errors
    /// [`TurnedAway`].
    pub fn check(&self, authorization: Option<&str>) -> Result<(), TurnedAway> {
        let token = self.read().map_err(TurnedAway::NoToken)?;
        let given = authorization.and_then(|text| text.strip_prefix("Bearer "));
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
        assert!(Token::open(&path).is_err());
        std::fs::write(&path, " \n").unwrap();
        assert!(Token::open(&path).unwrap_err().to_string().contains("holds no token"));
        let token = Token::in_file(&path);
        assert!(matches!(token.check(Some("Bearer ")), Err(TurnedAway::NoToken(_))));
        std::fs::write(&path, "abc\n").unwrap();
        assert_eq!(token.check(Some("Bearer abc")), Ok(()));
        for wrong in [None, Some(""), Some("abc"), Some("Bearer ab"), Some("Bearer abcd")] {
            assert_eq!(token.check(wrong), Err(TurnedAway::Stranger), "{wrong:?}");
        }
    }
}
