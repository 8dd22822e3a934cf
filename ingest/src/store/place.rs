//! Where a store is: a path or URL, and the object store behind it.

use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, path::Path};
use url::Url;

use crate::error::IngestError;

/// Turns a path or URL into a URL that ends in `/`.
pub(super) fn url(place: &str) -> Result<Url, IngestError> {
    if place.contains("://") {
        let text = format!("{}/", place.trim_end_matches('/'));
        return Url::parse(&text).map_err(|error| unusable(place, error.to_string()));
    }
    let path = std::path::absolute(place).map_err(|error| unusable(place, error.to_string()))?;
    let path = upward(&path);
    Url::from_directory_path(&path)
        .map_err(|()| unusable(place, "not a path that a URL can hold".into()))
}

/// The path without `..`: as the file system sees it as far as it exists, by its text beyond.
fn upward(path: &std::path::Path) -> std::path::PathBuf {
    let mut plain = std::path::PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain = plain.canonicalize().unwrap_or(plain);
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The object store that holds `url`, and the path of the store in it. Credentials and regions of
/// a remote one come from its usual environment variables.
pub(super) fn bucket(url: &Url) -> Result<(Arc<dyn ObjectStore>, Path), IngestError> {
    let path = || {
        Path::from_url_path(url.path()).map_err(|error| unusable(url.as_str(), error.to_string()))
    };
    match url.scheme() {
        "file" => Ok((Arc::new(LocalFileSystem::new()), path()?)),
        "memory" => Ok((Arc::new(InMemory::new()), path()?)),
        _ => {
            let settings = std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?.to_lowercase(), value.into_string().ok()?))
            });
            let (bucket, path) = object_store::parse_url_opts(url, settings)
                .map_err(|error| unusable(url.as_str(), error.to_string()))?;
            Ok((Arc::from(bucket), path))
        }
    }
}

fn unusable(place: &str, reason: String) -> IngestError {
    IngestError::Setting { what: "--store".into(), value: place.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use crate::store::Store;

    #[test]
    fn an_object_store_is_opened_by_its_url() {
        let store = Store::open("s3://fleet/loadline").unwrap();
        assert_eq!((store.url().as_str(), store.folder()), ("s3://fleet/loadline/", None));
    }

    #[test]
    fn a_path_may_lead_upward() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("fleet/../other");
        let store = Store::open(place.to_str().unwrap()).unwrap();
        assert_eq!(store.folder().unwrap(), folder.path().join("other"));
    }

    #[test]
    fn an_unknown_kind_of_place_is_refused_by_name() {
        let error = Store::open("gopher://fleet/loadline").unwrap_err().to_string();
        assert!(error.starts_with("cannot use --store `gopher://fleet/loadline/`: "), "{error}");
    }
}
