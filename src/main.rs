//! loadline
fn main() {}
