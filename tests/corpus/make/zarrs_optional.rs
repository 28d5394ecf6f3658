//! Arrays of optional values as zarrs 0.23 writes and reads them.
//!
//! ```text
//! [dependencies]
//! ndarray = "0.17"
//! serde = "1"
//! serde_json = "1"
//! zarrs = { version = "0.23", default-features = false,
//!           features = ["filesystem", "ndarray", "gzip", "zstd", "sharding", "crc32c", "transpose"] }
//! ```
//!
//! `zarrs-optional write DIR` writes arrays to a directory, `zarrs-optional read DIR` prints what zarrs reads of all
//! arrays in it: by name, all elements in C order, null where there is none, else a list of the one value.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use ndarray::ArrayD;
use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBuilder, DataType, ElementOwned, FillValue, data_type};
use zarrs::filesystem::FilesystemStore;

type Done<T> = Result<T, Box<dyn Error>>;
type Files = Arc<FilesystemStore>;

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, place] = arguments.as_slice() else {
        return Err("write DIR, or read DIR".into());
    };
    let store: Files = Arc::new(FilesystemStore::new(place)?);
    match what.as_str() {
        "write" => write(&store),
        "read" => read(&store, Path::new(place)),
        _ => Err("write DIR, or read DIR".into()),
    }
}

fn write(store: &Files) -> Done<()> {
    let numbers: Vec<Option<i32>> = (0..20)
        .map(|n| (n % 3 != 1).then_some(n * n - 50))
        .collect();
    let array = builder(
        vec![5, 4],
        vec![2, 3],
        data_type::int32().to_optional(),
        None::<i32>.into(),
    )
    .dimension_names(["y", "x"].into())
    .build(store.clone(), "/numbers")?;
    put(&array, &[5, 4], numbers)?;

    let floats = vec![
        Some(f64::NAN),
        Some(-0.0),
        None,
        None,
        None,
        Some(1.5),
        Some(1.5),
        Some(1.5),
    ];
    let array = builder(
        vec![8],
        vec![2],
        data_type::float64().to_optional(),
        Some(1.5_f64).into(),
    )
    .build(store.clone(), "/filled")?;
    put(&array, &[8], floats)?;

    let text = ["a", "", "Grüße"].map(|each| Some(each.to_string()));
    let text: Vec<Option<String>> = text.into_iter().flat_map(|each| [each, None]).collect();
    let array = builder(
        vec![6],
        vec![4],
        data_type::string().to_optional(),
        None::<String>.into(),
    )
    .build(store.clone(), "/text")?;
    put(&array, &[6], text)?;

    let nested = vec![
        None,
        Some(None),
        Some(Some(-7_i16)),
        Some(None),
        Some(None),
        Some(None),
        None,
        Some(Some(0)),
    ];
    let array = builder(
        vec![8],
        vec![3],
        data_type::int16().to_optional().to_optional(),
        Some(None::<i16>).into(),
    )
    .build(store.clone(), "/nested")?;
    put(&array, &[8], nested)
}

fn builder(
    shape: Vec<u64>,
    chunks: Vec<u64>,
    data_type: DataType,
    fill: FillValue,
) -> ArrayBuilder {
    let mut builder = ArrayBuilder::new(shape, chunks, data_type, fill);
    builder.bytes_to_bytes_codecs(vec![Arc::new(
        zarrs::array::codec::GzipCodec::new(5).expect("a level of gzip"),
    )]);
    builder
}

fn put<T: zarrs::array::Element>(
    array: &Array<FilesystemStore>,
    shape: &[usize],
    values: Vec<T>,
) -> Done<()> {
    array.store_metadata()?;
    array.store_array_subset(&array.subset_all(), ArrayD::from_shape_vec(shape, values)?)?;
    Ok(())
}

fn read(store: &Files, place: &Path) -> Done<()> {
    let mut found = serde_json::Map::new();
    for entry in std::fs::read_dir(place)? {
        let name = entry?
            .file_name()
            .into_string()
            .map_err(|_| "a name that is not text")?;
        if !place.join(&name).join("zarr.json").exists() {
            continue;
        }
        let array = Array::open(store.clone(), &format!("/{name}"))?;
        let document: Value =
            serde_json::from_slice(&std::fs::read(place.join(&name).join("zarr.json"))?)?;
        let inner = &document["data_type"]["configuration"];
        let values = match (
            inner["name"].as_str(),
            inner["configuration"]["name"].as_str(),
        ) {
            (Some("uint8"), _) => all::<u8>(&array)?,
            (Some("int16"), _) => all::<i16>(&array)?,
            (Some("int32"), _) => all::<i32>(&array)?,
            (Some("float32"), _) => all::<f32>(&array)?,
            (Some("float64"), _) => all::<f64>(&array)?,
            (Some("bool"), _) => all::<bool>(&array)?,
            (Some("string"), _) => all::<String>(&array)?,
            (Some("optional" | "zarrs.optional"), Some("int16")) => {
                of(elements::<Option<i16>>(&array)?, |each| match each {
                    None => Value::Null,
                    Some(value) => json!([value]),
                })
            }
            other => return Err(format!("no such type here: {other:?}").into()),
        };
        found.insert(name, values);
    }
    println!("{}", Value::Object(found));
    Ok(())
}

fn elements<T>(array: &Array<FilesystemStore>) -> Done<Vec<Option<T>>>
where
    Option<T>: ElementOwned,
{
    let found: ArrayD<Option<T>> = array.retrieve_array_subset(&array.subset_all())?;
    Ok(found.into_iter().collect())
}

fn all<T: serde::Serialize>(array: &Array<FilesystemStore>) -> Done<Value>
where
    Option<T>: ElementOwned,
{
    Ok(of(elements::<T>(array)?, |each| json!(each)))
}

fn of<T>(values: Vec<Option<T>>, show: impl Fn(T) -> Value) -> Value {
    values
        .into_iter()
        .map(|each| each.map_or(Value::Null, |value| json!([show(value)])))
        .collect()
}
