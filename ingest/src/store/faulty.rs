//! An object store whose calls fail when told to, for tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What happens to calls, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// One call fails.
    Once(usize),
    /// That call and all after it fail, as if the process had died.
    From(usize),
    /// That call does its work, but its answer is lost.
    AnswerLost(usize),
}

/// Passes calls on, except the faulty ones.
#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Arc<dyn ObjectStore>,
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

impl Faulty {
    pub(crate) fn over(
        inner: Arc<dyn ObjectStore>,
        fault: Fault,
        calls: Arc<AtomicUsize>,
    ) -> Arc<dyn ObjectStore> {
        Arc::new(Self { inner, fault, calls })
    }

    /// Counts a call: an error for before it, and whether its answer is lost.
    fn call(&self) -> Result<bool> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fault {
            Fault::Once(at) if call == at => Err(broken()),
            Fault::From(at) if call >= at => Err(broken()),
            Fault::AnswerLost(at) => Ok(call == at),
            Fault::Once(_) | Fault::From(_) => Ok(false),
        }
    }
}

fn broken() -> Error {
    Error::Generic { store: "faulty", source: "a fault was asked for".into() }
}

fn answer<T>(lost: bool, answer: T) -> Result<T> {
    if lost { Err(broken()) } else { Ok(answer) }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faulty {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, at: &Path, load: PutPayload, how: PutOptions) -> Result<PutResult> {
        let lost = self.call()?;
        answer(lost, self.inner.put_opts(at, load, how).await?)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let lost = self.call()?;
        answer(lost, self.inner.put_multipart_opts(at, how).await?)
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        let lost = self.call()?;
        answer(lost, self.inner.get_opts(at, how).await?)
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.call() {
            Ok(_) => self.inner.delete_stream(paths),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.call() {
            Ok(_) => self.inner.list(prefix),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let lost = self.call()?;
        answer(lost, self.inner.list_with_delimiter(prefix).await?)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, how: CopyOptions) -> Result<()> {
        let lost = self.call()?;
        answer(lost, self.inner.copy_opts(from, to, how).await?)
    }
}
