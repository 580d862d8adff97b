//! The one client of HTTP: a request, a connection, an answer, within limits and by a deadline. Operator's commands,
//! hooks, spans and webhooks go out by it. Nobody who answers is trusted: everything that is read has a limit, and no
//! answer sends a request anywhere else.
//!
//! Who may be asked, what is signed, what an answer means and when to try again is decided by whoever sends.
//!
//! | to find | look in |
//! |---|---|
//! | URLs taken apart | `address.rs` |
//! | requests written, answers read | `message.rs` |
//! | connections of those who wait: TCP, TLS, sockets of this machine | `waiting.rs` |
//! | the same for tasks | `../deliver/client.rs` |

mod address;
mod message;
mod waiting;

pub use address::{Address, AddressFault};
pub use message::{Answer, HEAD_BYTES_MAX, Head, Request};
pub use waiting::{ConnectFault, Stream, Timed, connect, connect_unix, exchange};
