//! Which part of which chunk is copied to which place.
//!
//! A plan is the product of one [`Part`] for each dimension, or a list of points along some dimensions ([`Points`]) and
//! the product of parts for the others. Any of its pieces can be asked for by number, so that threads take them without
//! asking each other. Numbers are those of `omnizarr.indexing`, whose plans these are; see there for what they mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use smallvec::SmallVec;

use crate::error::{Error, Result};

/// One number for each dimension.
pub type Coords = SmallVec<[u64; 6]>;

/// Some numbers of a shared list.
#[derive(Clone, Debug)]
pub struct List {
    numbers: Arc<Vec<i64>>,
    from: usize,
    to: usize,
}

impl List {
    /// All of them.
    #[must_use]
    pub fn new(numbers: Vec<i64>) -> Self {
        let to = numbers.len();
        Self { numbers: Arc::new(numbers), from: 0, to }
    }

    /// The numbers from the place `from` up to the place `to`.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        Self { numbers: Arc::clone(&self.numbers), from: self.from + from, to: (self.from + to).min(self.to) }
    }

    /// The numbers themselves.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        &self.numbers[self.from..self.to]
    }
}

/// Places along one axis, none of them negative.
#[derive(Clone, Debug)]
pub enum Places {
    /// At constant distance.
    Range {
        /// The first.
        start: i64,
        /// From one to the next; may be negative.
        step: i64,
        /// How many.
        len: usize,
    },
    /// Anywhere.
    List(List),
}

impl Places {
    /// The first `len` places.
    #[must_use]
    pub fn first(len: usize) -> Self {
        Self::Range { start: 0, step: 1, len }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range { len, .. } => *len,
            Self::List(list) => list.as_slice().len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    #[must_use]
    pub fn at(&self, number: usize) -> i64 {
        match self {
            Self::Range { start, step, .. } => start + step * i64::try_from(number).unwrap_or(i64::MAX),
            Self::List(list) => list.as_slice()[number],
        }
    }

    /// Those from number `from` up to number `to`.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        match self {
            Self::Range { step, .. } => Self::Range { start: self.at(from), step: *step, len: to - from },
            Self::List(list) => Self::List(list.slice(from, to)),
        }
    }

    /// Those of the given numbers.
    #[must_use]
    pub fn pick(&self, numbers: &[usize]) -> Self {
        Self::List(List::new(numbers.iter().map(|&number| self.at(number)).collect()))
    }

    /// The smallest and the largest.
    #[must_use]
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Self::Range { len: 0, .. } => None,
            Self::Range { start, len, .. } => {
                let last = self.at(len - 1);
                Some(((*start).min(last), (*start).max(last)))
            }
            Self::List(list) => Some((*list.as_slice().iter().min()?, *list.as_slice().iter().max()?)),
        }
    }

    /// Whether these are all places from 0 up to `len`, in order.
    #[must_use]
    pub fn covers(&self, len: usize) -> bool {
        matches!(self, Self::Range { start: 0, step: 1, len: here } if *here == len)
            || matches!(self, Self::Range { start: 0, len: 1, .. } if len == 1)
    }
}

/// The places of elements along one dimension of a chunk, and their targets. Both sides have the same number of places.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Within the chunk.
    pub inner: Places,
    /// Within the buffer.
    pub outer: Places,
}

/// What a piece selects.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one is made for each chunk, and boxed it would be slower to make
pub enum Selection {
    /// The product of the selections along each dimension. The buffer has the same number of dimensions.
    Mesh(SmallVec<[Axis; 4]>),
    /// Points along some dimensions.
    Points(Scattered),
}

/// Points along some dimensions of a chunk, and the product of the selections along the others, if any.
#[derive(Clone, Debug)]
pub struct Scattered {
    /// The dimensions of the chunk along which points are, in ascending order.
    pub dims: Arc<[usize]>,
    /// Within the chunk, one list for each of these dimensions. Places with the same position in the lists are a point.
    pub inner: Vec<List>,
    /// Within the buffer, along the dimension that the points have there.
    pub outer: Places,
    /// The number of that dimension.
    pub place: usize,
    /// The other dimensions, in order.
    pub axes: SmallVec<[Axis; 4]>,
}

/// Whether dimensions come in ascending order, each once, and are some of the first `ndim`.
fn are_among(dims: &[usize], ndim: usize) -> bool {
    dims.is_sorted_by(|a, b| a < b) && dims.last().is_some_and(|&last| last < ndim)
}

impl Scattered {
    /// How many dimensions the chunk has.
    #[must_use]
    pub fn ndim(&self) -> usize {
        self.dims.len() + self.axes.len()
    }

    /// Whether each of the dimensions is one of the chunk, and has its list.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        are_among(&self.dims, self.ndim()) && self.inner.len() == self.dims.len()
    }

    /// The other dimensions: their numbers in the chunk and in the buffer, and their selections.
    pub fn others(&self) -> impl Iterator<Item = (usize, usize, &Axis)> {
        (0..self.ndim())
            .filter(|dim| !self.dims.contains(dim))
            .zip(&self.axes)
            .enumerate()
            .map(|(number, (dim, axis))| (dim, number + usize::from(number >= self.place), axis))
    }
}

impl Selection {
    /// How many elements are selected.
    #[must_use]
    pub fn len(&self) -> usize {
        let product = |axes: &[Axis]| -> usize { axes.iter().map(|axis| axis.inner.len()).product() };
        match self {
            Self::Mesh(axes) => product(axes),
            Self::Points(points) => points.outer.len() * product(&points.axes),
        }
    }

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a plan says about one chunk.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Of the chunk, in the grid.
    pub coords: Coords,
    /// What of it goes where.
    pub selection: Selection,
    /// Every element of the chunk that is inside the array is selected, in C order.
    pub whole: bool,
}

/// One dimension of a piece.
#[derive(Clone, Debug)]
pub struct Cut {
    /// Of the chunk, along this dimension.
    pub number: u64,
    /// What of it goes where.
    pub axis: Axis,
    /// It is covered.
    pub whole: bool,
}

/// Elements at a constant step, in several chunks of one size. See `omnizarr.indexing.plans.Run`.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of chunks touched.
    pub chunks: usize,
    /// Number of the chunk that is at the origin.
    pub first: i64,
    /// Elements per chunk.
    pub size: i64,
    /// Elements of the array from the origin on.
    pub visible: i64,
    /// First element, from the origin.
    pub start: i64,
    /// Positive.
    pub step: i64,
    /// Number of elements.
    pub points: i64,
    /// Place of the first element in the buffer, counted in the direction of the run.
    pub out: i64,
    /// Length of the buffer if the run fills it backwards, else 0.
    pub flip: i64,
}

/// The smallest whole number that is not less than the quotient; the divisor is positive.
fn ceiling(dividend: i64, divisor: i64) -> i64 {
    -(-dividend).div_euclid(divisor)
}

fn as_len(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

impl Run {
    /// Whether it can be walked: nothing is negative or divided by 0, and no sum is too large.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let Self { first, size, visible, start, step, points, out, flip, .. } = *self;
        let last = points.checked_mul(step).and_then(|length| length.checked_add(start)?.checked_add(size));
        size > 0
            && step > 0
            && points > 0
            && [first, visible, start, out, flip].iter().all(|&number| number >= 0)
            && last.and_then(|last| last.checked_add(first)).is_some()
            && out.checked_add(points).is_some()
    }

    fn cut(&self, at: i64) -> Cut {
        let Self { size, step, start, .. } = *self;
        let chunk = if step <= size { start / size + at } else { (start + at * step) / size };
        let base = chunk * size;
        let low = ceiling(base - start, step).max(0);
        let high = ceiling(base + size - start, step).min(self.points);
        let outer = if self.flip == 0 {
            Places::Range { start: self.out + low, step: 1, len: as_len(high - low) }
        } else {
            Places::Range { start: self.flip - 1 - self.out - low, step: -1, len: as_len(high - low) }
        };
        Cut {
            number: u64::try_from(self.first + chunk).unwrap_or(0),
            axis: Axis {
                inner: Places::Range { start: start + low * step - base, step, len: as_len(high - low) },
                outer,
            },
            whole: high - low == size.min(self.visible - base),
        }
    }
}

/// One dimension of a plan.
#[derive(Clone, Debug)]
pub enum Part {
    /// Data for each chunk.
    Fixed(Vec<Cut>),
    /// Chunks of one size after chunks of another.
    Runs {
        /// In order.
        runs: Vec<Run>,
        /// How many chunks there are up to the end of each.
        ends: Vec<usize>,
    },
}

impl Part {
    /// A part of runs.
    #[must_use]
    pub fn of(runs: Vec<Run>) -> Self {
        let mut end = 0;
        let ends = runs
            .iter()
            .map(|run| {
                end += run.chunks;
                end
            })
            .collect();
        Self::Runs { runs, ends }
    }

    /// Number of chunks touched.
    #[must_use]
    pub fn chunks(&self) -> usize {
        match self {
            Self::Fixed(cuts) => cuts.len(),
            Self::Runs { ends, .. } => ends.last().copied().unwrap_or(0),
        }
    }

    fn cut(&self, at: usize) -> Cut {
        match self {
            Self::Fixed(cuts) => cuts[at].clone(),
            Self::Runs { runs, ends } => {
                let number = ends.partition_point(|&end| end <= at);
                let before = ends[number] - runs[number].chunks;
                runs[number].cut(i64::try_from(at - before).unwrap_or(0))
            }
        }
    }
}

/// Points along some dimensions, sorted by chunk. See `omnizarr.indexing.plans.Points`.
#[derive(Clone, Debug)]
pub struct Points {
    /// The dimensions along which they are, in ascending order.
    pub dims: Arc<[usize]>,
    /// Chunk numbers along each of these dimensions, one for each group of points.
    pub coords: Vec<List>,
    /// Group `i` has the points from `bounds[i]` up to `bounds[i + 1]`.
    pub bounds: Vec<usize>,
    /// Places within the chunks along each of these dimensions, one for each point.
    pub places: Vec<List>,
    /// Places of the points in the buffer; None: one after the other.
    pub order: Option<List>,
    /// The number of the buffer's dimension that the points have.
    pub place: usize,
    /// The other dimensions, in order.
    pub parts: Vec<Part>,
}

impl Points {
    /// Whether each group has a chunk, and the same number of places on both sides.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let groups = self.groups();
        let points = self.bounds.last().copied().unwrap_or(0);
        self.coords.len() == self.dims.len()
            && self.places.len() == self.dims.len()
            && are_among(&self.dims, self.dims.len() + self.parts.len())
            && self.place <= self.parts.len()
            && self.bounds.is_sorted()
            && self.coords.iter().all(|column| column.as_slice().len() == groups)
            && self.places.iter().chain(&self.order).all(|column| column.as_slice().len() == points)
    }

    /// Group points by chunk. Those of one chunk stay in order.
    ///
    /// # Errors
    /// If a point is outside the array, or if there are too many chunks or points to count.
    pub fn group<T: Index>(loose: &Loose<'_, T>, place: usize, parts: Vec<Part>) -> Result<Self> {
        let mut groups = loose.groups()?;
        let (order, places) = if groups.are_sorted { (None, loose.places()) } else { loose.sorted(&mut groups) };
        let coords = loose.coords_of(&groups);
        let dims = Arc::clone(&loose.dims);
        let places = places.into_iter().map(List::new).collect();
        Ok(Self { dims, coords, bounds: groups.bounds, places, order: order.map(List::new), place, parts })
    }

    fn groups(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    fn piece(&self, number: usize) -> Piece {
        let mut axes = SmallVec::with_capacity(self.parts.len());
        let mut others = Coords::with_capacity(self.parts.len());
        let mut group = number;
        for part in self.parts.iter().rev() {
            let cut = part.cut(group % part.chunks());
            group /= part.chunks();
            others.push(cut.number);
            axes.push(cut.axis);
        }
        axes.reverse();
        let (from, to) = (self.bounds[group], self.bounds[group + 1]);
        let outer = match &self.order {
            Some(order) => Places::List(order.slice(from, to)),
            None => Places::Range { start: i64::try_from(from).unwrap_or(i64::MAX), step: 1, len: to - from },
        };
        let mut coords: Coords =
            self.coords.iter().map(|column| u64::try_from(column.as_slice()[group]).unwrap_or(0)).collect();
        for dim in (0..self.dims.len() + self.parts.len()).filter(|dim| !self.dims.contains(dim)) {
            coords.insert(dim, others.pop().unwrap_or(0));
        }
        let inner = self.places.iter().map(|column| column.slice(from, to)).collect();
        let selection =
            Selection::Points(Scattered { dims: Arc::clone(&self.dims), inner, outer, place: self.place, axes });
        Piece { coords, selection, whole: false }
    }
}

/// The chunks along one dimension, all of one length.
#[derive(Clone, Copy, Debug)]
pub struct Even {
    length: u64,
    count: u32,
    /// Multiplied by a number of 32 bits, it gives the number divided by the length in the upper 64 bits of the product;
    /// 0: there are larger numbers, or the length is 1.
    inverse: u64,
}

impl Even {
    /// Number of chunks of this length.
    ///
    /// # Errors
    /// If this cannot be counted.
    pub fn new(length: u64, count: u64) -> Result<Self> {
        let end = length.checked_mul(count).filter(|&end| length > 0 && i64::try_from(end).is_ok());
        let (Some(end), Ok(count)) = (end, u32::try_from(count)) else { return Err(Error::refused("so many chunks")) };
        let inverse = if length > 1 && end <= 1 << 32 { u64::MAX / length + 1 } else { 0 };
        Ok(Self { length, count, inverse })
    }

    /// The number of the chunk that holds an element, of which it is known that there is one.
    #[allow(clippy::cast_possible_truncation)]
    fn number_of(self, element: u64) -> u64 {
        if self.inverse == 0 {
            element / self.length
        } else {
            // Lemire, Kaser and Kurz, "Faster remainder by direct computation" (2019).
            ((u128::from(self.inverse) * u128::from(element)) >> 64) as u64
        }
    }

    /// The place of an element within its chunk. It is less than the length, whatever the number is.
    fn place_of(self, element: u64) -> i64 {
        let base = self.number_of(element).wrapping_mul(self.length);
        i64::try_from(element.wrapping_sub(base).min(self.length - 1)).unwrap_or(0)
    }
}

/// The number of an element along a dimension.
pub trait Index {
    /// Return it.
    fn get(&self) -> i64;
}

impl Index for i64 {
    fn get(&self) -> i64 {
        *self
    }
}

/// In memory that other threads may change.
impl Index for AtomicI64 {
    fn get(&self) -> i64 {
        self.load(Ordering::Relaxed)
    }
}

/// Points that are not grouped by chunk. See `omnizarr.indexing.arrays.Ungrouped`.
pub struct Loose<'a, T> {
    /// The dimensions along which they are, in ascending order.
    pub dims: Arc<[usize]>,
    /// The elements along each of these dimensions, one for each point.
    pub columns: Vec<&'a [T]>,
    /// The chunks along each of these dimensions.
    pub grid: Vec<Even>,
}

/// A negative number becomes one that is beyond all others.
#[allow(clippy::cast_sign_loss)]
fn element(index: &impl Index) -> u64 {
    index.get() as u64
}

/// The chunks that hold points.
struct Groups {
    /// The number of its chunk, counted in C order of all chunks along the dimensions, for each point.
    keys: Vec<u32>,
    /// The number of each chunk that holds points.
    chunks: Vec<u32>,
    /// See `Points`.
    bounds: Vec<usize>,
    /// Whether the points come in the order of their chunks.
    are_sorted: bool,
}

impl<T: Index> Loose<'_, T> {
    /// The number of points.
    fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    fn groups(&self) -> Result<Groups> {
        let too_many = || Error::refused("so many chunks");
        let mut total = 1_u32;
        for even in &self.grid {
            total = total.checked_mul(even.count).ok_or_else(too_many)?;
        }
        let len = self.len();
        let fits = self.columns.len() == self.grid.len() && self.columns.iter().all(|column| column.len() == len);
        if !fits || u32::try_from(len).is_err() {
            return Err(Error::refused("points that cannot be"));
        }
        let mut keys = vec![0_u32; len];
        let mut are_inside = true;
        for (column, &even) in self.columns.iter().zip(&self.grid) {
            let end = even.length * u64::from(even.count);
            for (key, item) in keys.iter_mut().zip(*column) {
                let element = element(item);
                are_inside &= element < end;
                // Only used if all are inside.
                #[allow(clippy::cast_possible_truncation)]
                let number = even.number_of(element) as u32;
                *key = key.wrapping_mul(even.count).wrapping_add(number);
            }
        }
        if !are_inside {
            return Err(Error::refused("a point outside the array"));
        }
        let mut counts = vec![0_u32; total as usize];
        let mut are_sorted = true;
        let mut last = 0;
        for &key in &keys {
            counts[key as usize] += 1;
            are_sorted &= last <= key;
            last = key;
        }
        let (mut chunks, mut bounds) = (Vec::new(), vec![0]);
        let mut end = 0;
        for (chunk, &count) in (0..).zip(&counts) {
            if count > 0 {
                end += count as usize;
                chunks.push(chunk);
                bounds.push(end);
            }
        }
        Ok(Groups { keys, chunks, bounds, are_sorted })
    }

    fn coords_of(&self, groups: &Groups) -> Vec<List> {
        let mut rest = groups.chunks.clone();
        let mut coords: Vec<_> = self
            .grid
            .iter()
            .rev()
            .map(|even| {
                let column = rest.iter().map(|number| i64::from(number % even.count)).collect();
                for number in &mut rest {
                    *number /= even.count;
                }
                List::new(column)
            })
            .collect();
        coords.reverse();
        coords
    }

    /// The places within the chunks along each dimension.
    fn places(&self) -> Vec<Vec<i64>> {
        self.columns
            .iter()
            .zip(&self.grid)
            .map(|(column, even)| column.iter().map(|item| even.place_of(element(item))).collect())
            .collect()
    }

    /// The numbers of the points in the order of their chunks, and their places within the chunks along each dimension.
    fn sorted(&self, groups: &mut Groups) -> (Option<Vec<i64>>, Vec<Vec<i64>>) {
        let mut next = vec![0; groups.chunks.last().map_or(0, |&last| last as usize + 1)];
        for (&chunk, &start) in groups.chunks.iter().zip(&groups.bounds) {
            next[chunk as usize] = u32::try_from(start).unwrap_or(u32::MAX);
        }
        let mut order = vec![0; groups.keys.len()];
        for (number, key) in (0..).zip(&mut groups.keys) {
            let next = &mut next[*key as usize];
            *key = *next;
            *next += 1;
            order[*key as usize] = number;
        }
        let places = self.columns.iter().zip(&self.grid).map(|(column, even)| {
            let mut places = vec![0; groups.keys.len()];
            for (&at, index) in groups.keys.iter().zip(*column) {
                places[at as usize] = even.place_of(element(index));
            }
            places
        });
        (Some(order), places.collect())
    }
}

/// All chunks that a selection touches.
#[derive(Clone, Debug)]
pub enum Plan {
    /// The product of its parts.
    Product(Vec<Part>),
    /// Points along some dimensions.
    Points(Points),
}

impl Plan {
    /// Number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        let (groups, parts) = match self {
            Self::Product(parts) => (1, parts),
            Self::Points(points) => (points.groups(), &points.parts),
        };
        parts.iter().map(Part::chunks).try_fold(groups, usize::checked_mul).unwrap_or(usize::MAX)
    }

    /// Whether the array has dimensions.
    #[must_use]
    pub fn has_dimensions(&self) -> bool {
        !matches!(self, Self::Product(parts) if parts.is_empty())
    }

    /// Whether no chunk is touched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The piece of a number, counted in C order of the grid.
    #[must_use]
    pub fn piece(&self, number: usize) -> Piece {
        match self {
            Self::Product(parts) => {
                let mut axes = SmallVec::with_capacity(parts.len());
                let mut coords = Coords::with_capacity(parts.len());
                let mut whole = true;
                let mut rest = number;
                for part in parts.iter().rev() {
                    let chunks = part.chunks();
                    let cut = part.cut(rest % chunks);
                    rest /= chunks;
                    whole &= cut.whole;
                    coords.push(cut.number);
                    axes.push(cut.axis);
                }
                coords.reverse();
                axes.reverse();
                Piece { coords, selection: Selection::Mesh(axes), whole }
            }
            Self::Points(points) => points.piece(number),
        }
    }

    /// The plan of what `selection` selects of a chunk that is itself made of chunks of the shape `inner`.
    ///
    /// The places in the buffer are the places of the selection.
    ///
    /// # Errors
    /// If there are places beyond what can be counted.
    pub fn within(selection: &Selection, inner: &[usize]) -> Result<Self> {
        match selection {
            Selection::Mesh(axes) => {
                if axes.len() != inner.len() {
                    return Err(Error::refused("another number of dimensions"));
                }
                let parts =
                    axes.iter().zip(inner).map(|(axis, &size)| within_axis(axis, size)).collect::<Result<_>>()?;
                Ok(Self::Product(parts))
            }
            Selection::Points(points) => {
                if points.ndim() != inner.len() {
                    return Err(Error::refused("another number of dimensions"));
                }
                points_within(points, inner)
            }
        }
    }
}

fn within_axis(axis: &Axis, size: usize) -> Result<Part> {
    let size = i64::try_from(size).map_err(|_| Error::refused("a chunk of such a length"))?;
    let len = axis.inner.len();
    let mut cuts = Vec::new();
    match &axis.inner {
        Places::Range { start, step, .. } if *step > 0 => {
            let mut from = 0;
            while from < len {
                let place = start + step * i64::try_from(from).unwrap_or(i64::MAX);
                let number = place / size;
                let base = number * size;
                let here = as_len(ceiling(base + size - place, *step)).min(len - from);
                cuts.push(Cut {
                    number: u64::try_from(number).unwrap_or(0),
                    axis: Axis {
                        inner: Places::Range { start: place - base, step: *step, len: here },
                        outer: axis.outer.slice(from, from + here),
                    },
                    whole: i64::try_from(here).unwrap_or(0) == size && (*step == 1 || size == 1),
                });
                from += here;
            }
        }
        places => {
            let numbers: Vec<i64> = (0..len).map(|at| places.at(at)).collect();
            let mut order: Vec<usize> = (0..len).collect();
            order.sort_by_key(|&at| numbers[at] / size);
            for group in order.chunk_by(|&a, &b| numbers[a] / size == numbers[b] / size) {
                let number = numbers[group[0]] / size;
                cuts.push(Cut {
                    number: u64::try_from(number).unwrap_or(0),
                    axis: Axis {
                        inner: Places::List(List::new(group.iter().map(|&at| numbers[at] - number * size).collect())),
                        outer: axis.outer.pick(group),
                    },
                    whole: false,
                });
            }
        }
    }
    Ok(Part::Fixed(cuts))
}

fn points_within(points: &Scattered, inner: &[usize]) -> Result<Plan> {
    let Scattered { dims, inner: columns, outer, place, .. } = points;
    let sizes: Vec<i64> = dims
        .iter()
        .map(|&dim| i64::try_from(inner[dim]).map_err(|_| Error::refused("a chunk of such a length")))
        .collect::<Result<_>>()?;
    let chunk_of = |point: usize| -> Coords {
        columns
            .iter()
            .zip(&sizes)
            .map(|(column, size)| u64::try_from(column.as_slice()[point] / size).unwrap_or(0))
            .collect()
    };
    let chunks: Vec<Coords> = (0..outer.len()).map(chunk_of).collect();
    let mut order: Vec<usize> = (0..outer.len()).collect();
    order.sort_by(|&a, &b| chunks[a].cmp(&chunks[b]));
    let mut bounds = vec![0];
    let mut coords: Vec<Vec<i64>> = vec![Vec::new(); columns.len()];
    for group in order.chunk_by(|&a, &b| chunks[a] == chunks[b]) {
        bounds.push(bounds[bounds.len() - 1] + group.len());
        for (column, &number) in coords.iter_mut().zip(&chunks[group[0]]) {
            column.push(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }
    let places = columns
        .iter()
        .zip(&sizes)
        .map(|(column, size)| List::new(order.iter().map(|&point| column.as_slice()[point] % size).collect()))
        .collect();
    let order = order.iter().map(|&point| outer.at(point)).collect();
    Ok(Plan::Points(Points {
        dims: Arc::clone(dims),
        coords: coords.into_iter().map(List::new).collect(),
        bounds,
        places,
        order: Some(List::new(order)),
        place: *place,
        parts: points.others().map(|(dim, _, axis)| within_axis(axis, inner[dim])).collect::<Result<_>>()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(places: &Places) -> Vec<i64> {
        (0..places.len()).map(|at| places.at(at)).collect()
    }

    /// What a part says, as pairs of (element of the array, place in the buffer).
    fn pairs(part: &Part, size: i64) -> Vec<(i64, i64)> {
        let mut pairs = Vec::new();
        for at in 0..part.chunks() {
            let cut = part.cut(at);
            let base = i64::try_from(cut.number).unwrap() * size;
            pairs.extend(all(&cut.axis.inner).iter().map(|place| base + place).zip(all(&cut.axis.outer)));
        }
        pairs
    }

    #[test]
    fn a_run_selects_each_element_of_its_slice_once() {
        for size in 1..6 {
            for step in 1..8 {
                for start in 0..7 {
                    for points in 1..9 {
                        let last = start + (points - 1) * step;
                        let chunks = if step > size { points } else { last / size - start / size + 1 };
                        let visible = last + 3;
                        let run = Run {
                            chunks: as_len(chunks),
                            first: 0,
                            size,
                            visible,
                            start,
                            step,
                            points,
                            out: 0,
                            flip: 0,
                        };
                        let wanted: Vec<_> = (0..points).map(|at| (start + at * step, at)).collect();
                        assert_eq!(pairs(&Part::of(vec![run.clone()]), size), wanted);
                        let wanted: Vec<_> = (0..points).map(|at| (start + at * step, points - 1 - at)).collect();
                        assert_eq!(pairs(&Part::of(vec![Run { flip: points, ..run }]), size), wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn a_run_covers_the_chunks_of_which_all_elements_in_the_array_are_selected() {
        let run = Run { chunks: 3, first: 0, size: 4, visible: 10, start: 2, step: 1, points: 8, out: 0, flip: 0 };
        let wholes: Vec<_> = (0..3).map(|at| run.cut(at).whole).collect();
        assert_eq!(wholes, [false, true, true]);
    }

    #[test]
    fn what_is_selected_of_a_shard_is_what_is_selected_of_its_chunks() {
        let axis = Axis {
            inner: Places::Range { start: 1, step: 3, len: 4 },
            outer: Places::Range { start: 9, step: -1, len: 4 },
        };
        assert_eq!(pairs(&within_axis(&axis, 4).unwrap(), 4), [(1, 9), (4, 8), (7, 7), (10, 6)]);
        let list = Places::List(List::new([9, 0, 8, 1].into()));
        let part = within_axis(&Axis { inner: list, outer: Places::first(4) }, 4).unwrap();
        assert_eq!(pairs(&part, 4), [(0, 1), (1, 3), (9, 0), (8, 2)]);
    }

    #[test]
    fn points_of_a_shard_are_grouped_by_its_chunks() {
        let points = Scattered {
            dims: [0, 1].into(),
            inner: vec![List::new([5, 0, 4].into()), List::new([1, 1, 0].into())],
            outer: Places::first(3),
            place: 0,
            axes: SmallVec::new(),
        };
        let plan = Plan::within(&Selection::Points(points), &[4, 2]).unwrap();
        assert_eq!(plan.len(), 2);
        let piece = plan.piece(1);
        assert_eq!(piece.coords.as_slice(), [1, 0]);
        let Selection::Points(Scattered { inner, outer, .. }) = piece.selection else { panic!("points") };
        assert_eq!((inner[0].as_slice(), inner[1].as_slice()), ([1, 0].as_slice(), [1, 0].as_slice()));
        assert_eq!(all(&outer), [0, 2]);
    }

    #[test]
    fn points_beside_a_slice_are_grouped_by_chunk_and_the_slice_is_cut_at_each() {
        let points = Scattered {
            dims: [0, 2].into(),
            inner: vec![List::new([5, 0, 4].into()), List::new([1, 1, 0].into())],
            outer: Places::first(3),
            place: 0,
            axes: [Axis { inner: Places::Range { start: 1, step: 1, len: 3 }, outer: Places::first(3) }]
                .into_iter()
                .collect(),
        };
        let plan = Plan::within(&Selection::Points(points), &[4, 2, 2]).unwrap();
        let pieces: Vec<_> = (0..plan.len()).map(|at| plan.piece(at)).collect();
        let coords: Vec<_> = pieces.iter().map(|piece| piece.coords.to_vec()).collect();
        assert_eq!(coords, [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]);
        let Selection::Points(last) = &pieces[3].selection else { panic!("points") };
        assert_eq!((last.inner[0].as_slice(), last.inner[1].as_slice()), ([1, 0].as_slice(), [1, 0].as_slice()));
        assert_eq!(
            (all(&last.outer), all(&last.axes[0].inner), all(&last.axes[0].outer)),
            (vec![0, 2], vec![0, 1], vec![1, 2])
        );
        assert_eq!(last.others().map(|(dim, place, _)| (dim, place)).collect::<Vec<_>>(), [(1, 1)]);
    }

    #[test]
    fn points_are_grouped_by_chunk_and_those_of_one_chunk_stay_in_order() {
        for (length, count) in [(1, 7), (3, 5), (4, 4), (7, 1), (1 << 20, 9), ((1 << 31) + 1, 3)] {
            let end = i64::try_from(length * count).unwrap();
            let mut number = 12345_i64;
            let mut random = || {
                number = (number * 1_103_515_245 + 12_345) % (1 << 31);
                number * 11 % end
            };
            for len in [0, 1, 50] {
                let columns: Vec<Vec<i64>> = (0..2).map(|_| (0..len).map(|_| random()).collect()).collect();
                let sorted: Vec<Vec<i64>> = columns
                    .iter()
                    .map(|column| {
                        let mut column = column.clone();
                        column.sort_unstable();
                        column
                    })
                    .collect();
                for (columns, dims) in [(&columns[..], [0, 1].as_slice()), (&columns[..1], &[0]), (&sorted[1..], &[0])]
                {
                    let grid = vec![Even::new(length, count).unwrap(); columns.len()];
                    let loose = Loose { dims: dims.into(), columns: columns.iter().map(Vec::as_slice).collect(), grid };
                    let points = Points::group(&loose, 0, Vec::new()).unwrap();
                    assert!(points.is_sound());
                    let length = i64::try_from(length).unwrap();
                    let mut wanted: Vec<(Vec<i64>, i64)> = (0_i64..)
                        .take(len)
                        .map(|at| (columns.iter().map(|column| column[usize::try_from(at).unwrap()]).collect(), at))
                        .collect();
                    wanted.sort_by_key(|(point, _)| point.iter().map(|place| place / length).collect::<Vec<_>>());
                    let mut found = Vec::new();
                    for number in 0..points.groups() {
                        let Piece { coords, selection: Selection::Points(piece), .. } = points.piece(number) else {
                            panic!("points")
                        };
                        for at in 0..piece.outer.len() {
                            let place = |(list, &number): (&List, &u64)| {
                                i64::try_from(number).unwrap() * length + list.as_slice()[at]
                            };
                            found.push((piece.inner.iter().zip(&coords).map(place).collect(), piece.outer.at(at)));
                        }
                    }
                    assert_eq!(found, wanted);
                }
            }
        }
    }

    #[test]
    fn points_outside_the_array_are_refused() {
        for (length, count, outside) in [(4, 3, 12), (4, 3, -1), (4, 3, i64::MIN), (1 << 40, 2, 1 << 41)] {
            let grid = vec![Even::new(length, count).unwrap()];
            let column = [0, outside, 1];
            assert!(Points::group(&Loose { dims: [0].into(), columns: vec![&column], grid }, 0, Vec::new()).is_err());
        }
        assert!(Even::new(0, 1).is_err());
        assert!(Even::new(1 << 40, 1 << 30).is_err());
        let grid = vec![Even::new(1, 1 << 20).unwrap(); 2];
        let loose = Loose { dims: [0, 1].into(), columns: vec![&[0], &[0]], grid };
        assert!(Points::group::<i64>(&loose, 0, Vec::new()).is_err());
    }

    #[test]
    fn a_plan_without_dimensions_has_one_piece() {
        let plan = Plan::Product(Vec::new());
        assert_eq!(plan.len(), 1);
        assert!(plan.piece(0).whole);
    }
}
