//! What answers hold until they are read: how much in all, and how much for one address. It does not know what an answer
//! says.
//!
//! An answer that fits into [`FREE_BYTES`] is held for whoever asked; connections bound how many there are. What is larger
//! needs room until the other side has read it, and there is much less of it for what everybody may read. A large answer
//! is handed to its connection in pieces, so a document that all answers share is not copied for each of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use interlock_core::Code;

use crate::answer::{Refusal, json};

/// The largest answer that needs no room.
const FREE_BYTES: usize = 16 * 1024;
/// What is handed over at a time.
const PIECE_BYTES: usize = 16 * 1024;
/// What an answer that shares its document holds beside it: what the connection has copied of it and not yet written.
const SHARED_BYTES: usize = 64 * 1024;
/// Room for answers that only somebody with a key gets.
const KNOWN_ROOM: usize = 256 * 1024 * 1024;
/// Room for answers that everybody gets.
const PUBLIC_ROOM: usize = 32 * 1024 * 1024;
/// One address takes at most this part of it.
const ADDRESS_PART: usize = 4;

/// Marks an answer that everybody gets, from a document that all such answers share.
#[derive(Debug, Clone, Copy)]
struct Public;

/// A document for everybody.
pub(crate) fn public_document(text: &'static str) -> Response {
    let mut response = json(StatusCode::OK, text);
    response.extensions_mut().insert(Public);
    response
}

/// The room for large answers.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    known: Arc<Room>,
    public: Arc<Room>,
}

impl Answers {
    /// The answer to somebody at an address, or a refusal if too much waits there to be read.
    pub(crate) fn hold(&self, response: Response, address: IpAddr) -> Response {
        // What tells no length is made piece by piece and holds nothing.
        let Some(length) = response.body().size_hint().exact().and_then(|length| usize::try_from(length).ok()) else {
            return response;
        };
        if length <= FREE_BYTES {
            return response;
        }
        let taken = match response.extensions().get::<Public>() {
            Some(Public) => self.public.take(address, SHARED_BYTES, PUBLIC_ROOM),
            None => self.known.take(address, length, KNOWN_ROOM),
        };
        let Some(taken) = taken else {
            let message = "too many large answers wait to be read; read them, or try again in a moment";
            return Refusal::new(Code::FaultBusy, message).into_response();
        };
        response.map(|body| Body::new(Pieces { body, piece: Bytes::new(), _taken: taken }))
    }
}

/// Who shares a bound: an address, or the network that one customer of a provider has.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
        address @ IpAddr::V4(_) => address,
    }
}

#[derive(Debug, Default)]
struct Room(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    // Invariant: the sum of `by_network`.
    all: usize,
    by_network: HashMap<IpAddr, usize>,
}

impl Room {
    fn take(self: &Arc<Self>, address: IpAddr, bytes: usize, room: usize) -> Option<Taken> {
        let network = network_of(address);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = held.all.checked_add(bytes).filter(|all| *all <= room)?;
        let share = room.checked_div(ADDRESS_PART).unwrap_or(room);
        let own = held.by_network.get(&network).copied().unwrap_or(0);
        let own = own.checked_add(bytes).filter(|own| *own <= share)?;
        held.all = all;
        held.by_network.insert(network, own);
        Some(Taken { room: Arc::clone(self), network, bytes })
    }
}

/// Room that is taken until it is dropped.
#[derive(Debug)]
struct Taken {
    room: Arc<Room>,
    network: IpAddr,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut held = self.room.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.all = held.all.saturating_sub(self.bytes);
        let left = held.by_network.get(&self.network).map_or(0, |own| own.saturating_sub(self.bytes));
        if left == 0 {
            held.by_network.remove(&self.network);
        } else {
            held.by_network.insert(self.network, left);
        }
    }
}

/// A body in pieces, with the room it takes.
struct Pieces {
    body: Body,
    /// What is left of what the body gave last.
    piece: Bytes,
    _taken: Taken,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.piece.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.piece = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end @ (Some(Err(_)) | None) => return Poll::Ready(end),
            }
        }
        let length = self.piece.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.piece.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let left = u64::try_from(self.piece.len()).unwrap_or(u64::MAX);
        match self.body.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(rest.saturating_add(left)),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http_body_util::BodyExt;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    fn document() -> &'static str {
        interlock_wire::document()
    }

    fn body(answers: &Answers, length: usize, address: IpAddr) -> StatusCode {
        answers.hold(json(StatusCode::OK, "a".repeat(length)), address).status()
    }

    #[test]
    fn one_address_leaves_room_for_others_and_gets_its_own_back() {
        let answers = Answers::default();
        let ask = |address| answers.hold(public_document(document()), address);
        let most = PUBLIC_ROOM / ADDRESS_PART / SHARED_BYTES;
        let mut unread: Vec<Response> = (0..most).map(|_| ask(HERE)).collect();
        assert!(unread.iter().all(|answer| answer.status() == StatusCode::OK));
        assert_eq!(ask(HERE).status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(ELSEWHERE).status(), StatusCode::OK);
        // What is small needs no room.
        assert_eq!(body(&answers, FREE_BYTES, HERE), StatusCode::OK);
        drop(unread.pop());
        assert_eq!(ask(HERE).status(), StatusCode::OK);
    }

    #[test]
    fn many_addresses_share_what_there_is() {
        let answers = Answers::default();
        let ask = |number: u32| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            answers.hold(public_document(document()), address)
        };
        let most = u32::try_from(PUBLIC_ROOM / SHARED_BYTES).expect("a number");
        let unread: Vec<Response> = (0..most).map(ask).collect();
        assert!(unread.iter().all(|answer| answer.status() == StatusCode::OK));
        assert_eq!(ask(most).status(), StatusCode::SERVICE_UNAVAILABLE);
        // What somebody with a key asked for has a room of its own, by its length.
        assert_eq!(body(&answers, FREE_BYTES + 1, HERE), StatusCode::OK);
        assert_eq!(body(&answers, KNOWN_ROOM / ADDRESS_PART + 1, HERE), StatusCode::SERVICE_UNAVAILABLE);
        drop(unread);
        assert_eq!(ask(most).status(), StatusCode::OK);
    }

    #[test]
    fn a_network_counts_as_one_address() {
        let address = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), HERE);
        assert_ne!(HERE, address("192.0.2.2"));
    }

    #[test]
    fn a_document_is_read_as_it_is_and_piece_by_piece_without_a_copy() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let answer = Answers::default().hold(public_document(document()), HERE);
        let mut body = answer.into_body();
        assert_eq!(body.size_hint().exact(), u64::try_from(document().len()).ok());
        let mut read = Vec::new();
        while let Some(frame) = runtime.block_on(body.frame()) {
            let piece = frame.expect("a frame").into_data().expect("data");
            assert!(!piece.is_empty() && piece.len() <= PIECE_BYTES);
            assert!(document().as_bytes().as_ptr_range().contains(&piece.as_ptr()), "a copy");
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, document().as_bytes());
        assert!(body.is_end_stream());
    }
}
