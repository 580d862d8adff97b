//! How the body of a request is read: how large it may be, how slow, and how much of all bodies is in memory at once. It
//! does not know what a body says.
//!
//! A body that fits into [`FREE_BYTES`] is read whoever sends it; connections bound how many there are. What is larger
//! needs room, and there is much less of it for those whose headers prove nobody: a token in a body is known only once
//! the body was read.

use std::ops::Deref;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http_body_util::BodyExt;
use interlock_core::Code;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::Service;
use crate::answer::Refusal;
use crate::rate::Admission;
use crate::request::malformed;

/// The largest body.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// The largest body that is copied.
const COPIED_BYTES_MAX: usize = 4096;
/// How long a body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// What is read of every body, and the unit in which room for more is counted.
const FREE_BYTES: usize = 16 * 1024;
/// Room for the larger bodies of those who proved who they are, in units: 256 MiB.
const KNOWN_ROOM: usize = 256 * 64;
/// Room for the larger bodies of those who did not yet: 32 MiB.
const UNKNOWN_ROOM: usize = 32 * 64;

// Memory is the process's, so the room is as well.
static KNOWN: Semaphore = Semaphore::const_new(KNOWN_ROOM);
static UNKNOWN: Semaphore = Semaphore::const_new(UNKNOWN_ROOM);

/// A body that was read, with the room it takes.
#[derive(Debug)]
pub(crate) struct Received {
    bytes: Bytes,
    _room: Option<SemaphorePermit<'static>>,
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads the body of a request whose headers proved who sent it.
pub(crate) async fn read_body(request: Request) -> Result<Received, Refusal> {
    read(request, &KNOWN, None).await
}

/// Where a request is counted before more of it is read than of everybody.
pub(crate) struct Counter<'a> {
    pub(crate) service: &'a Service,
    pub(crate) admission: &'a mut Admission,
}

/// Reads the body of a request whose sender is not known yet.
pub(crate) async fn read_unproven(request: Request, counter: Option<Counter<'_>>) -> Result<Received, Refusal> {
    read(request, &UNKNOWN, counter).await
}

async fn read(request: Request, room: &'static Semaphore, counter: Option<Counter<'_>>) -> Result<Received, Refusal> {
    let read = collect(request.into_body(), room, counter);
    let late = |_| Err(Refusal::new(Code::RequestSlow, "the body took too long to arrive"));
    tokio::time::timeout(BODY_TIME_MAX, read).await.unwrap_or_else(late)
}

async fn collect(
    mut body: Body,
    room: &'static Semaphore,
    mut counter: Option<Counter<'_>>,
) -> Result<Received, Refusal> {
    let mut taken: Option<SemaphorePermit<'static>> = None;
    // Most bodies come in one piece, which is not put together with anything.
    let (mut first, mut whole) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| malformed("the body could not be read"))?;
        let Ok(piece) = frame.into_data() else { continue };
        let length = first.len().saturating_add(whole.len()).saturating_add(piece.len());
        if length > BODY_BYTES_MAX {
            return Err(Refusal::new(Code::RequestTooLarge, format!("a body has at most {BODY_BYTES_MAX} bytes")));
        }
        let units = length.div_ceil(FREE_BYTES).saturating_sub(1);
        let more = units.saturating_sub(taken.as_ref().map_or(0, SemaphorePermit::num_permits));
        if more > 0 {
            if let (None, Some(Counter { service, admission })) = (&taken, &mut counter) {
                service.consult(admission, None).await?;
            }
            let permit = room.try_acquire_many(u32::try_from(more).unwrap_or(u32::MAX)).map_err(|_| full())?;
            match &mut taken {
                Some(taken) => taken.merge(permit),
                None => taken = Some(permit),
            }
        }
        if length == piece.len() {
            first = piece;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&piece);
        }
    }
    let bytes = if whole.is_empty() { apart(first) } else { Bytes::from(whole) };
    Ok(Received { bytes, _room: taken })
}

fn full() -> Refusal {
    let message = "too many large bodies are being read; try again in a moment, with the token in a header";
    Refusal::new(Code::FaultBusy, message)
}

/// A small body as a copy. As a part of what the connection read it would keep that buffer, and while a request waits for
/// its answer the connection would need another one.
fn apart(body: Bytes) -> Bytes {
    if body.len() <= COPIED_BYTES_MAX { Bytes::copy_from_slice(&body) } else { body }
}
