//! The store of kept trees against real trees, real git, real kills and full disks.

mod crash;
mod damage;
mod generated;
mod git;
mod limits;
mod plain;
mod together;
mod world;
