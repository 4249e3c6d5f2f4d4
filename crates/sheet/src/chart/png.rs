//! SVG to PNG, with the font that widths were measured with.

use std::sync::{Arc, LazyLock};

use png::{BitDepth, ColorType, DeflateCompression, Encoder, EncodingError, Filter};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use super::text::FONT_FILES;

/// Why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The SVG cannot be read.
    #[error("cannot read the SVG: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// It would be too large.
    #[error("a picture of {width} × {height} pixels is too large")]
    TooLarge {
        /// Pixels.
        width: f32,
        /// Pixels.
        height: f32,
    },
    /// It could not be encoded.
    #[error("cannot write PNG: {0}")]
    Encoding(String),
}

/// A picture is not longer or wider: a pixel takes four bytes.
const SIDE_MAX: f32 = 16_384.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for file in &*FONT_FILES {
        fonts.load_font_data(file.clone());
    }
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

/// Draws an SVG document, `scale` pixels for each of its own.
///
/// # Errors
/// When it is no SVG, or the picture would be too large.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    let options = Options {
        fontdb: FONTS.clone(),
        font_family: "DejaVu Sans".to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options)?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let too_large = || PngError::TooLarge { width, height };
    if !(1.0..=SIDE_MAX).contains(&width) || !(1.0..=SIDE_MAX).contains(&height) {
        return Err(too_large());
    }
    let mut pixels =
        Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(too_large)?;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    encode(&pixels).map_err(|error| PngError::Encoding(error.to_string()))
}

/// Three bytes a pixel: a graph covers its ground, nothing shows through. At the first
/// level, which makes a third more bytes: a deeper search takes longer than to draw.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_deflate_compression(DeflateCompression::Level(1));
    encoder.set_filter(Filter::Up);
    let mut rgb = Vec::with_capacity(pixels.data().len() / 4 * 3);
    for pixel in pixels.data().chunks_exact(4) {
        rgb.extend_from_slice(&pixel[..3]);
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(bytes)
}
