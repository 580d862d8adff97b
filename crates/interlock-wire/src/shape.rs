//! How a wire type is written down: once, as the type that service and command line use and as its schema.
//!
//! ```text
//! wire! {
//!     /// What the schema says the type is.
//!     answer Agent {
//!         /// What the schema says the member is.
//!         name: String,                      // always there
//!         next_cursor: String | null,        // always there, and may be null
//!         description?: String,              // may be left out
//!         agent_id: String = AgentId,        // with a schema of its own
//!         kind as "type": String,            // written under another name
//!     }
//! }
//! ```
//!
//! `answer` is an object that has no other members, `open` one that may come to have some, and `request` one whose
//! members count as absent where they are `null`. A type that has several forms says after its name, in brackets, what
//! stands under it in the document; `named!` gives its forms, and words and numbers, names of their own.

/// Types with their schemas.
macro_rules! wire {
    ($($(#[doc = $doc:literal])* $kind:ident $name:ident $(<T = $usual:ty>)? $([$whole:expr])? {
        $($members:tt)*
    })*) => {
        $(members! { { $(#[doc = $doc])* $kind $name $(<T = $usual>)? $([$whole])? } {} {} $($members)* })*
    };
}

/// The members of a type, one after the other: as the type has them, and as its schema does.
macro_rules! members {
    ($head:tt { $($typed:tt)* } { $($told:tt)* } $(#[doc = $doc:literal])*
        $member:ident $(as $name:literal)?: $type:ty | null $(= $schema:expr)?, $($rest:tt)*) => {
        members! { $head
            { $($typed)* $(#[doc = $doc])* $(#[serde(rename = $name)])?
                #[serde(deserialize_with = "crate::nullable")] pub $member: Option<$type>, }
            { $($told)* [name_of!($member $($name)?), Nullable, &[$($doc),*], schema_of!($type $(= $schema)?)] }
            $($rest)* }
    };
    ($head:tt { $($typed:tt)* } { $($told:tt)* } $(#[doc = $doc:literal])*
        $member:ident $(as $name:literal)?: $type:ty $(= $schema:expr)?, $($rest:tt)*) => {
        members! { $head
            { $($typed)* $(#[doc = $doc])* $(#[serde(rename = $name)])? pub $member: $type, }
            { $($told)* [name_of!($member $($name)?), Always, &[$($doc),*], schema_of!($type $(= $schema)?)] }
            $($rest)* }
    };
    ($head:tt { $($typed:tt)* } { $($told:tt)* } $(#[doc = $doc:literal])*
        $member:ident $(as $name:literal)? ?: $type:ty $(= $schema:expr)?, $($rest:tt)*) => {
        members! { $head
            { $($typed)* $(#[doc = $doc])* $(#[serde(rename = $name)])?
                #[serde(default, skip_serializing_if = "Option::is_none")] pub $member: Option<$type>, }
            { $($told)* [name_of!($member $($name)?), Optional, &[$($doc),*], schema_of!($type $(= $schema)?)] }
            $($rest)* }
    };
    ({ $(#[doc = $doc:literal])* $kind:ident $name:ident <T = $usual:ty> $([$whole:expr])? }
        { $($typed:tt)* } $told:tt) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(bound(deserialize = "T: serde::Deserialize<'de>"))]
        pub struct $name<T = $usual> { $($typed)* }
        described! { $kind $name [$($doc),*] $([$whole])? $told }
    };
    ({ $(#[doc = $doc:literal])* $kind:ident $name:ident $([$whole:expr])? } { $($typed:tt)* } $told:tt) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $($typed)* }
        described! { $kind $name [$($doc),*] $([$whole])? $told }
    };
}

/// The schema of a type.
macro_rules! described {
    ($kind:ident $name:ident [$($doc:literal),*] $([$whole:expr])?
        { $([$member:expr, $presence:ident, $lines:expr, $schema:expr])* }) => {
        impl $name {
            /// The names of all members, as they are written.
            pub const MEMBERS: &'static [&'static str] = &[$($member),*];

            /// All members that there are in any form.
            pub(crate) fn members() -> crate::schema::Object {
                crate::schema::$kind()
                    $(.member($member, crate::schema::Presence::$presence, $lines, $schema))*
            }
        }

        impl crate::schema::Described for $name {
            fn schema() -> crate::schema::Schema {
                crate::schema::Schema::reference(crate::schema::Named { name: stringify!($name), make: || {
                    crate::schema::Schema::from(whole_of!($name $([$whole])?)).described(&[$($doc),*])
                } })
            }
        }
    };
}

macro_rules! whole_of {
    ($name:ident [$whole:expr]) => {
        $whole
    };
    ($name:ident) => {
        $name::members()
    };
}

macro_rules! name_of {
    ($member:ident $name:literal) => {
        $name
    };
    ($member:ident) => {
        stringify!($member)
    };
}

macro_rules! schema_of {
    ($type:ty = $schema:expr) => {
        crate::schema::Schema::from($schema)
    };
    ($type:ty) => {
        <$type as crate::schema::Described>::schema()
    };
}

/// Schemas with names that no type of ours stands for alone.
macro_rules! named {
    ($($(#[doc = $doc:literal])* $name:ident = $schema:expr;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy)]
            pub(crate) struct $name;

            impl From<$name> for crate::schema::Schema {
                fn from(_: $name) -> crate::schema::Schema {
                    crate::schema::Schema::reference(crate::schema::Named { name: stringify!($name), make: || {
                        crate::schema::Schema::from($schema).described(&[$($doc),*])
                    } })
                }
            }
        )*
    };
}
