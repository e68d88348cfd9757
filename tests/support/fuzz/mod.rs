//! Fuzz targets that need nothing but the public interface. The others are in `counterfoil::testing::fuzz`.

pub(crate) mod damage;
mod input;
pub(crate) mod operations;
