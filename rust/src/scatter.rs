//! Moving elements between a chunk and the caller's memory.
//!
//! The caller's memory is an array of any strides, which several threads fill at once, each with pieces of its own:
//! that no two pieces of a plan share an element is what makes this sound, and is why it is unsafe to make one.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::{ptr, slice};

use smallvec::SmallVec;

use crate::convert::Conversion;
use crate::error::{Error, Result};
use crate::plan::{Axis, Places, Scattered, Selection};

/// How the elements of a chunk are in its bytes.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Elements along each dimension.
    pub shape: Vec<usize>,
    /// Bytes from one element to the next along each dimension of an array whose axes are permuted.
    pub strides: Vec<usize>,
    /// Bytes of an element.
    pub item: usize,
    /// Bytes of all elements.
    pub nbytes: usize,
}

impl Layout {
    /// A chunk whose elements are stored in C order of its axes as `order` permutes them.
    ///
    /// # Errors
    /// If it has more bytes than can be addressed.
    pub fn new(shape: &[usize], order: &[usize], item: usize) -> Result<Self> {
        let mut strides = vec![0; shape.len()];
        let mut nbytes = item;
        for &axis in order.iter().rev() {
            strides[axis] = nbytes;
            nbytes = nbytes
                .checked_mul(shape[axis])
                .filter(|&n| isize::try_from(n).is_ok())
                .ok_or_else(|| Error::refused("a chunk of such a size"))?;
        }
        Ok(Self { shape: shape.to_vec(), strides, item, nbytes })
    }

    /// The bytes from the first selected element to the end of the last one; None if no element is selected.
    ///
    /// # Errors
    /// If a place is outside the chunk.
    pub fn span_of(&self, selection: &Selection) -> Result<Option<Range<usize>>> {
        let outside = || Error::refused("a place outside the chunk");
        let (mut low, mut high) = (0_usize, self.item);
        let mut add = |bounds: (usize, usize), axis: usize| {
            let stride = self.strides[axis];
            low = bounds.0.checked_mul(stride)?.checked_add(low)?;
            high = bounds.1.checked_mul(stride)?.checked_add(high)?;
            (bounds.1 < self.shape[axis]).then_some(())
        };
        let (ndim, is_empty) = match selection {
            Selection::Mesh(axes) => (axes.len(), axes.iter().any(|axis| axis.inner.is_empty())),
            Selection::Points(points) => (points.ndim(), selection.is_empty()),
        };
        let is_sound = !matches!(selection, Selection::Points(points) if !points.is_sound());
        if ndim != self.shape.len() || ndim != self.strides.len() || !is_sound {
            return Err(Error::refused("another number of dimensions"));
        }
        if is_empty {
            return Ok(None);
        }
        let mut add =
            |bounds: Option<(usize, usize)>, axis| bounds.and_then(|bounds| add(bounds, axis)).ok_or_else(outside);
        match selection {
            Selection::Mesh(axes) => {
                axes.iter().enumerate().try_for_each(|(number, axis)| add(bounds_of(&axis.inner), number))?;
            }
            Selection::Points(points) => {
                let columns = points.dims.iter().zip(&points.inner);
                columns.into_iter().try_for_each(|(&dim, list)| add(bounds_of_list(list.as_slice()), dim))?;
                points.others().try_for_each(|(dim, _, axis)| add(bounds_of(&axis.inner), dim))?;
            }
        }
        Ok(Some(low..high))
    }
}

/// The smallest and the largest of some places; None if there are no places, or if one is negative or too large.
fn bounds_of(places: &Places) -> Option<(usize, usize)> {
    match places {
        // Computed with overflow checks, unlike the places of ranges that are known to be inside.
        Places::Range { start, step, len } => {
            let last = i64::try_from(len.checked_sub(1)?).ok()?.checked_mul(*step)?.checked_add(*start)?;
            Some((usize::try_from(*start.min(&last)).ok()?, usize::try_from(*start.max(&last)).ok()?))
        }
        Places::List(list) => bounds_of_list(list.as_slice()),
    }
}

fn bounds_of_list(places: &[i64]) -> Option<(usize, usize)> {
    let (low, high) = places.iter().fold((i64::MAX, i64::MIN), |(low, high), &place| (low.min(place), high.max(place)));
    Some((usize::try_from(low).ok()?, usize::try_from(high).ok()?))
}

/// An array of the caller's: to be filled, or to take values from.
#[derive(Clone, Debug)]
pub struct Memory {
    start: *mut u8,
    shape: Vec<usize>,
    strides: Vec<isize>,
    item: usize,
    /// What is done to the elements of chunks that are put into it.
    conversion: Option<Arc<Conversion>>,
}

// SAFETY: the caller that makes one guarantees that threads may use it at the same time, for different elements.
unsafe impl Send for Memory {}
// SAFETY: the same.
unsafe impl Sync for Memory {}

impl Memory {
    /// An array whose first element is at `start`.
    ///
    /// # Safety
    /// For as long as the value or a clone of it lives, all elements that shape and strides reach must be there; those
    /// that are filled may be written, each by one thread, and be read by no other meanwhile.
    ///
    /// # Panics
    /// If there is not one stride for each dimension.
    #[must_use]
    pub unsafe fn new(start: *mut u8, shape: Vec<usize>, strides: Vec<isize>, item: usize) -> Self {
        assert_eq!(shape.len(), strides.len());
        Self { start, shape, strides, item, conversion: None }
    }

    /// The same array, whose elements are results of a conversion. It can only be filled.
    ///
    /// # Errors
    /// If results have another size.
    pub fn converting(self, conversion: Arc<Conversion>) -> Result<Self> {
        if conversion.to != self.item {
            return Err(Error::refused("results of another size"));
        }
        Ok(Self { conversion: Some(conversion), ..self })
    }

    /// Bytes of an element.
    #[must_use]
    pub fn item(&self) -> usize {
        self.item
    }

    /// Check that all places are inside, on both sides, and that chunk and array have elements of the sizes that
    /// belong together. False: there is nothing to do.
    fn check(&self, selection: &Selection, layout: &Layout, available: &Range<usize>) -> Result<bool> {
        let outside = || Error::refused("a place outside the buffer");
        let inside =
            |places: &Places, len: usize| places.is_empty() || bounds_of(places).is_some_and(|(_, high)| high < len);
        let fit = |axis: &Axis, len: usize| axis.inner.len() == axis.outer.len() && inside(&axis.outer, len);
        let fits = match selection {
            Selection::Mesh(axes) => {
                axes.len() == self.shape.len() && axes.iter().zip(&self.shape).all(|(axis, &len)| fit(axis, len))
            }
            Selection::Points(points) => {
                let Scattered { inner, outer, place, axes, .. } = points;
                self.shape.len() == axes.len() + 1
                    && self.shape.get(*place).is_some_and(|&len| inside(outer, len))
                    && inner.iter().all(|list| list.as_slice().len() == outer.len())
                    && points.is_sound()
                    && points.others().all(|(_, place, axis)| fit(axis, self.shape[place]))
            }
        };
        if !fits {
            return Err(outside());
        }
        if layout.item != self.conversion.as_ref().map_or(self.item, |conversion| conversion.from) {
            return Err(Error::refused("elements of another size"));
        }
        match layout.span_of(selection)? {
            None => Ok(false),
            Some(span) if span.start >= available.start && span.end <= available.end => Ok(self.item > 0),
            Some(_) => Err(Error::refused("bytes that are not there")),
        }
    }

    /// Put the selected elements of a chunk into their places.
    ///
    /// `bytes` are the bytes of the chunk from `base` on, at least to the end of the selection.
    ///
    /// # Errors
    /// If a place is outside the chunk, its bytes, or the array, or an element is not converted here.
    pub fn scatter(&self, layout: &Layout, bytes: &[u8], base: usize, selection: &Selection) -> Result<()> {
        let end = base.checked_add(bytes.len()).ok_or_else(|| Error::refused("so many bytes"))?;
        if !self.check(selection, layout, &(base..end))? {
            return Ok(());
        }
        // The first byte of the chunk need not be there: an address is only computed with.
        let (from, to) = (bytes.as_ptr().wrapping_sub(base), self.start);
        if let Some(conversion) = &self.conversion {
            // SAFETY: all places have been checked.
            let is_done = unsafe { convert(from, to, &self.steps_beside(layout, selection), conversion) };
            return if is_done { Ok(()) } else { Err(Error::refused("elements that depend on NumPy")) };
        }
        match selection {
            Selection::Points(points) if points.axes.is_empty() => self.each_point(layout, points, |offset, place| {
                // SAFETY: the same.
                unsafe { copy_item(from.wrapping_offset(offset), to.offset(place), self.item) };
            }),
            // SAFETY: the same.
            _ => unsafe { copy(from, to, &self.steps_beside(layout, selection)) },
        }
        Ok(())
    }

    /// Put the selected elements of the array into their places in a chunk, all bytes of which are in `bytes`.
    ///
    /// Of several elements for one place the last wins.
    ///
    /// # Errors
    /// If a place is outside the chunk, its bytes, or the array.
    pub fn gather(&self, layout: &Layout, bytes: &mut [u8], selection: &Selection) -> Result<()> {
        if self.conversion.is_some() {
            return Err(Error::refused("elements that are converted"));
        }
        if !self.check(selection, layout, &(0..bytes.len()))? {
            return Ok(());
        }
        let (from, to) = (self.start.cast_const(), bytes.as_mut_ptr());
        match selection {
            Selection::Points(points) if points.axes.is_empty() => self.each_point(layout, points, |offset, place| {
                // SAFETY: the same.
                unsafe { copy_item(from.offset(place), to.offset(offset), self.item) };
            }),
            // SAFETY: the same.
            _ => unsafe { copy(from, to, &self.steps_beside(layout, selection).turned()) },
        }
        Ok(())
    }

    /// Set all selected elements to one value, of the bytes `element`.
    ///
    /// # Errors
    /// If a place is outside the chunk or the array, or the value has another size.
    pub fn fill(&self, layout: &Layout, element: &[u8], selection: &Selection) -> Result<()> {
        let mut converted = SmallVec::<[u8; 16]>::new();
        let element = match &self.conversion {
            None => element,
            Some(conversion) => {
                converted.resize(self.item, 0);
                if !conversion.run(element, &mut converted) {
                    return Err(Error::refused("a value that depends on NumPy"));
                }
                &converted
            }
        };
        if element.len() != self.item {
            return Err(Error::refused("a value of another size"));
        }
        if !self.check(selection, layout, &(0..layout.nbytes))? {
            return Ok(());
        }
        match selection {
            Selection::Points(points) if points.axes.is_empty() => self.each_point(layout, points, |_, place| {
                // SAFETY: all places have been checked.
                unsafe { copy_item(element.as_ptr(), self.start.offset(place), self.item) };
            }),
            // SAFETY: the same.
            _ => unsafe { fill(element, self.start, self.steps(selection)) },
        }
        Ok(())
    }

    /// Whether all selected elements have the bytes `element`.
    ///
    /// # Errors
    /// If a place is outside the chunk or the array, or the value has another size.
    pub fn holds_only(&self, layout: &Layout, element: &[u8], selection: &Selection) -> Result<bool> {
        if element.len() != self.item || self.conversion.is_some() {
            return Err(Error::refused("a value of another size"));
        }
        if !self.check(selection, layout, &(0..layout.nbytes))? {
            return Ok(true);
        }
        match selection {
            Selection::Points(points) if points.axes.is_empty() => {
                let mut same = true;
                self.each_point(layout, points, |_, place| {
                    // SAFETY: all places have been checked.
                    same = same && unsafe { slice::from_raw_parts(self.start.offset(place), self.item) } == element;
                });
                Ok(same)
            }
            // SAFETY: the same.
            _ => Ok(unsafe { holds(element, self.start, &self.steps(selection)) }),
        }
    }

    /// The steps through the selected elements of a chunk and of the array side by side.
    fn steps_beside(&self, layout: &Layout, selection: &Selection) -> Steps {
        let stride = |axis: usize| signed(layout.strides[axis]);
        // Elements that are converted stay apart.
        let item = if self.conversion.is_some() { 0 } else { self.item };
        match selection {
            Selection::Mesh(axes) => {
                let axes = axes.iter().enumerate().map(|(axis, places)| (places, stride(axis), self.strides[axis]));
                Steps::new(axes, item)
            }
            Selection::Points(points) => {
                let axes = points.others().map(|(dim, place, axis)| (axis, stride(dim), self.strides[place]));
                let mut steps = Steps::new(axes, item);
                let mut places = Vec::with_capacity(points.outer.len());
                self.each_point(layout, points, |offset, place| places.push((offset, place)));
                steps.loops.push(Loop {
                    len: places.len(),
                    from: points.dims.iter().map(|&dim| stride(dim)).min().unwrap_or(0),
                    to: self.strides[points.place],
                    places: Some(places.into()),
                });
                steps.sort();
                steps
            }
        }
    }

    /// The steps through the selected elements of the array alone.
    fn steps(&self, selection: &Selection) -> Steps {
        let loops = |axes: &mut dyn Iterator<Item = (usize, &Axis)>| {
            Steps::new(axes.map(|(place, axis)| (axis, self.strides[place], self.strides[place])), 0)
        };
        let mut steps = match selection {
            Selection::Mesh(axes) => loops(&mut axes.iter().enumerate()),
            Selection::Points(points) => {
                let mut steps = loops(&mut points.others().map(|(_, place, axis)| (place, axis)));
                let to = self.strides[points.place];
                let places = (0..points.outer.len()).map(|at| (0, index(points.outer.at(at)) * to)).collect();
                steps.loops.push(Loop { len: points.outer.len(), from: to, to, places: Some(places) });
                steps
            }
        };
        for step in &mut steps.loops {
            // As if the chunk were the array.
            step.from = step.to;
        }
        steps.from = steps.to;
        steps.item = self.item;
        steps.join();
        steps
    }

    /// The memory that the selected elements of a chunk fill, if they are all elements of it and are
    /// there as in the chunk; None otherwise, and if they are converted.
    ///
    /// Each piece of a plan may be asked for once at a time.
    #[must_use]
    #[allow(clippy::mut_from_ref)]
    pub fn window(&self, layout: &Layout, selection: &Selection) -> Option<&mut [u8]> {
        let start = self.place_of_window(layout, selection)?;
        // SAFETY: the elements are there, are side by side, and belong to this piece alone.
        Some(unsafe { slice::from_raw_parts_mut(start, layout.nbytes) })
    }

    /// The same, to be read: the bytes of a whole chunk, if they are in the array as in the chunk.
    #[must_use]
    pub fn chunk(&self, layout: &Layout, selection: &Selection) -> Option<&[u8]> {
        let start = self.place_of_window(layout, selection)?;
        // SAFETY: the elements are there, and are side by side.
        Some(unsafe { slice::from_raw_parts(start, layout.nbytes) })
    }

    fn place_of_window(&self, layout: &Layout, selection: &Selection) -> Option<*mut u8> {
        let Selection::Mesh(axes) = selection else { return None };
        if self.conversion.is_some()
            || axes.len() != self.shape.len()
            || axes.len() != layout.shape.len()
            || axes.len() != layout.strides.len()
            || layout.item != self.item
            || layout.nbytes == 0
        {
            return None;
        }
        let mut offset = 0;
        let mut extent = layout.item;
        for (number, axis) in axes.iter().enumerate() {
            let len = layout.shape[number];
            let Places::Range { start, step, len: outer } = axis.outer else { return None };
            let first = usize::try_from(start).ok()?;
            if !axis.inner.covers(len) || outer != len || first.checked_add(len)? > self.shape[number] {
                return None;
            }
            if len > 1 {
                if step != 1 || self.strides[number] != isize::try_from(layout.strides[number]).ok()? {
                    return None;
                }
                extent = layout.strides[number].checked_mul(len - 1)?.checked_add(extent)?;
            }
            offset += isize::try_from(first).ok()? * self.strides[number];
        }
        // SAFETY: the first and the last of the chunk's elements are elements of the array.
        (extent == layout.nbytes).then(|| unsafe { self.start.offset(offset) })
    }

    /// Call `visit` with the offset in the chunk and the offset in the array of each of some points, in order.
    fn each_point(&self, layout: &Layout, points: &Scattered, mut visit: impl FnMut(isize, isize)) {
        let Scattered { dims, inner, outer, place: dim, .. } = points;
        let stride = self.strides[*dim];
        let mut offsets = [0; 256];
        let mut places = [0; 256];
        for from in (0..outer.len()).step_by(offsets.len()) {
            let len = offsets.len().min(outer.len() - from);
            offsets[..len].fill(0);
            for (list, &dim) in inner.iter().zip(dims.iter()) {
                let stride = signed(layout.strides[dim]);
                for (offset, &place) in offsets.iter_mut().zip(&list.as_slice()[from..from + len]) {
                    *offset += index(place) * stride;
                }
            }
            match outer {
                Places::Range { .. } => {
                    for (number, place) in places[..len].iter_mut().enumerate() {
                        *place = index(outer.at(from + number)) * stride;
                    }
                }
                Places::List(list) => {
                    for (place, &at) in places.iter_mut().zip(&list.as_slice()[from..from + len]) {
                        *place = index(at) * stride;
                    }
                }
            }
            for (&offset, &place) in offsets[..len].iter().zip(&places[..len]) {
                visit(offset, place);
            }
        }
    }
}

/// A number of bytes that is known to fit.
#[allow(clippy::cast_possible_wrap)]
fn signed(number: usize) -> isize {
    number as isize
}

/// A place that has been checked, or the distance between two such places: both fit.
#[allow(clippy::cast_possible_truncation)]
fn index(place: i64) -> isize {
    place as isize
}

/// One loop over elements: how far it is from each to the next, in bytes, on either side.
#[derive(Clone, Debug)]
struct Loop {
    len: usize,
    from: isize,
    to: isize,
    /// The places, if their distances are not constant; then the distances are between neighbours on the axis.
    places: Option<Box<[(isize, isize)]>>,
}

impl Loop {
    fn at(&self, number: usize) -> (isize, isize) {
        match &self.places {
            None => (signed(number) * self.from, signed(number) * self.to),
            Some(places) => places[number],
        }
    }

    fn is_run(&self) -> bool {
        self.places.is_none()
    }
}

/// Loops over elements of this many bytes, the outermost first.
#[derive(Clone, Debug)]
struct Steps {
    /// Where the first element is, on either side.
    from: isize,
    to: isize,
    item: usize,
    loops: SmallVec<[Loop; 4]>,
}

impl Steps {
    /// The loops of a mesh, of whose axes each comes with its strides. Elements that are side by side on
    /// both sides become one.
    fn new<'a>(axes: impl Iterator<Item = (&'a Axis, isize, isize)>, item: usize) -> Self {
        let mut steps = Self { from: 0, to: 0, item, loops: SmallVec::new() };
        for (axis, from, to) in axes {
            let len = axis.inner.len();
            match (&axis.inner, &axis.outer) {
                (Places::Range { start: first, step: one, .. }, Places::Range { start, step, .. }) => {
                    steps.from += index(*first) * from;
                    steps.to += index(*start) * to;
                    if len > 1 {
                        let (from, to) = (index(*one) * from, index(*step) * to);
                        steps.loops.push(Loop { len, from, to, places: None });
                    }
                }
                (inner, outer) => {
                    let places: Box<[_]> =
                        (0..len).map(|at| (index(inner.at(at)) * from, index(outer.at(at)) * to)).collect();
                    steps.loops.push(Loop { len, from, to, places: Some(places) });
                }
            }
        }
        if item > 0 {
            steps.join();
        }
        steps
    }

    /// The same way in the other direction.
    fn turned(mut self) -> Self {
        std::mem::swap(&mut self.from, &mut self.to);
        for step in &mut self.loops {
            std::mem::swap(&mut step.from, &mut step.to);
            for place in step.places.iter_mut().flatten() {
                *place = (place.1, place.0);
            }
        }
        self.sort();
        self
    }

    /// Make one of loops that can be, and of elements side by side.
    fn join(&mut self) {
        self.go_forward();
        while let Some(at) = self
            .loops
            .iter()
            .position(|step| step.is_run() && step.from == signed(self.item) && step.to == signed(self.item))
        {
            self.item *= self.loops.remove(at).len;
        }
        self.join_loops();
    }

    /// Walk forward through the memory that is written.
    fn go_forward(&mut self) {
        for step in self.loops.iter_mut().filter(|step| step.is_run() && step.to < 0) {
            let (from, to) = step.at(step.len - 1);
            self.from += from;
            self.to += to;
            step.from = -step.from;
            step.to = -step.to;
        }
    }

    /// Make one of loops that can be.
    fn join_loops(&mut self) {
        let mut outer = 0;
        while outer < self.loops.len() {
            let found = self.loops.iter().position(|inner| {
                let (from, to) = (self.loops[outer].from, self.loops[outer].to);
                let len = signed(inner.len);
                inner.is_run() && self.loops[outer].is_run() && from == inner.from * len && to == inner.to * len
            });
            match found {
                Some(inner) if inner != outer => {
                    self.loops[inner].len *= self.loops[outer].len;
                    self.loops.remove(outer);
                    outer = 0;
                }
                _ => outer += 1,
            }
        }
        self.sort();
    }

    /// Put loops with small steps in memory that is written innermost.
    fn sort(&mut self) {
        self.loops.sort_by_key(|step| {
            (std::cmp::Reverse(step.to.unsigned_abs()), std::cmp::Reverse(step.from.unsigned_abs()))
        });
    }
}

/// Elements along the sides of a square that is converted at once, where neighbours are far from each other.
const SQUARE: usize = 32;
/// Bytes of the largest element that is converted.
const WIDEST: usize = 8;

/// Convert elements, and put the results where they belong. Return false if one cannot be converted here.
///
/// # Safety
/// As [`copy`], with elements and results of the sizes that the conversion has.
unsafe fn convert(from: *const u8, to: *mut u8, steps: &Steps, conversion: &Conversion) -> bool {
    let (source, result) = (conversion.from, conversion.to);
    if source > WIDEST || result > WIDEST {
        return false;
    }
    let mut steps = steps.clone();
    steps.go_forward();
    steps.join_loops();
    let is_dense = |step: &Loop| step.is_run() && step.from == signed(source) && step.to == signed(result);
    if let Some(at) = steps.loops.iter().position(is_dense) {
        let run = steps.loops.remove(at);
        return walk(&steps.loops, steps.from, steps.to, &mut |here, there| {
            // SAFETY: that of the caller; as many elements are side by side, on either side.
            let (data, out) = unsafe {
                (
                    slice::from_raw_parts(from.wrapping_offset(here), run.len * source),
                    slice::from_raw_parts_mut(to.wrapping_offset(there), run.len * result),
                )
            };
            conversion.run(data, out)
        });
    }
    let one = Loop { len: 1, from: 0, to: 0, places: None };
    let along = steps.loops.pop().unwrap_or_else(|| one.clone());
    // The loop whose elements are near each other in the chunk, if that is another one.
    let near = |step: &Loop| step.is_run() && step.from.unsigned_abs() < along.from.unsigned_abs();
    let across = (0..steps.loops.len())
        .filter(|&at| near(&steps.loops[at]))
        .min_by_key(|&at| steps.loops[at].from.unsigned_abs())
        .map_or(one, |at| steps.loops.remove(at));
    let wide = if across.len == 1 { SQUARE * SQUARE } else { SQUARE };
    let mut data = [0; SQUARE * SQUARE * WIDEST];
    let mut out = [0; SQUARE * SQUARE * WIDEST];
    walk(&steps.loops, steps.from, steps.to, &mut |here, there| {
        let rows = (0..across.len).step_by(SQUARE).map(|row| row..across.len.min(row + SQUARE));
        rows.flat_map(|rows| {
            let columns = (0..along.len).step_by(wide).map(|column| column..along.len.min(column + wide));
            columns.map(move |columns| (rows.clone(), columns))
        })
        .all(|(rows, columns)| {
            let count = rows.len() * columns.len();
            let places = || columns.clone().flat_map(|column| rows.clone().map(move |row| (row, column)));
            for ((row, column), element) in places().zip(data.chunks_exact_mut(source)) {
                let place = here + across.at(row).0 + along.at(column).0;
                // SAFETY: that of the caller.
                unsafe { copy_item(from.wrapping_offset(place), element.as_mut_ptr(), source) };
            }
            let fine = conversion.run(&data[..count * source], &mut out[..count * result]);
            for (number, row) in rows.clone().enumerate() {
                for (place, column) in columns.clone().enumerate() {
                    let element = &out[(place * rows.len() + number) * result..][..result];
                    let place = there + across.at(row).1 + along.at(column).1;
                    // SAFETY: the same.
                    unsafe { copy_item(element.as_ptr(), to.wrapping_offset(place), result) };
                }
            }
            fine
        })
    })
}

/// Call `visit` with the offsets of all elements on both sides until it returns false; return whether it never did.
fn walk(loops: &[Loop], from: isize, to: isize, visit: &mut impl FnMut(isize, isize) -> bool) -> bool {
    match loops {
        [] => visit(from, to),
        [step, rest @ ..] => (0..step.len).all(|number| {
            let (here, there) = step.at(number);
            walk(rest, from + here, to + there, visit)
        }),
    }
}

/// Copy an element of any size.
///
/// # Safety
/// Both are there.
#[inline]
unsafe fn copy_item(from: *const u8, to: *mut u8, item: usize) {
    // SAFETY: that of the caller.
    unsafe {
        match item {
            1 => copy_word::<1>(from, to),
            2 => copy_word::<2>(from, to),
            4 => copy_word::<4>(from, to),
            8 => copy_word::<8>(from, to),
            16 => copy_word::<16>(from, to),
            _ => ptr::copy_nonoverlapping(from, to, item),
        }
    }
}

/// Copy this many bytes at once.
///
/// # Safety
/// Both are there.
#[inline]
unsafe fn copy_word<const WIDTH: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: that of the caller; arrays of bytes may be anywhere.
    unsafe { to.cast::<[u8; WIDTH]>().write(from.cast::<[u8; WIDTH]>().read()) };
}

/// Copy elements.
///
/// # Safety
/// All that the loops reach from these places are there.
unsafe fn copy(from: *const u8, to: *mut u8, steps: &Steps) {
    // SAFETY: that of the caller.
    unsafe {
        match steps.item {
            1 => copy_words::<1, 64, 16>(from, to, steps),
            2 => copy_words::<2, 32, 8>(from, to, steps),
            4 => copy_words::<4, 16, 4>(from, to, steps),
            8 => copy_words::<8, 8, 2>(from, to, steps),
            16 => copy_words::<16, 4, 1>(from, to, steps),
            item => {
                let Some((inner, outer)) = steps.loops.split_last() else {
                    ptr::copy_nonoverlapping(from.wrapping_offset(steps.from), to.wrapping_offset(steps.to), item);
                    return;
                };
                walk(outer, steps.from, steps.to, &mut |here, there| {
                    copy_runs(from.wrapping_offset(here), to.wrapping_offset(there), inner, item);
                    true
                });
            }
        }
    }
}

/// The number of runs by which memory is prefetched before it is written: the runs that are copied while it arrives.
const AHEAD: usize = 8;

/// Copy runs of elements.
///
/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_runs(from: *const u8, to: *mut u8, step: &Loop, item: usize) {
    for number in 0..step.len {
        // Short runs, far from each other, are where a processor does not see by itself what comes next.
        if item <= 4 * LINE && step.len - number > AHEAD {
            let next = to.wrapping_offset(step.at(number + AHEAD).1);
            for line in (0..item).step_by(LINE) {
                prefetch(next.wrapping_add(line));
            }
        }
        let (here, there) = step.at(number);
        // SAFETY: that of the caller.
        unsafe { ptr::copy_nonoverlapping(from.wrapping_offset(here), to.wrapping_offset(there), item) };
    }
}

/// Tell the processor that memory will be written soon; where it is need not even be there.
#[inline]
fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is but a hint.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Bytes of which a processor fetches all if it needs one.
const LINE: usize = 64;
/// Elements along the sides of a square that is copied before the next one, where neighbours are far from each other.
const BLOCK: usize = 128;

/// Copy elements of this many bytes. A cache line holds `TILE` of them, and a vector `MANY`.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_words<const WIDTH: usize, const TILE: usize, const MANY: usize>(
    from: *const u8,
    to: *mut u8,
    steps: &Steps,
) {
    let Some((inner, outer)) = steps.loops.split_last() else {
        // SAFETY: that of the caller.
        unsafe { copy_word::<WIDTH>(from.wrapping_offset(steps.from), to.wrapping_offset(steps.to)) };
        return;
    };
    let near = |step: isize| step != 0 && step.unsigned_abs() < LINE;
    // Where neighbours on one side are far from each other on the other side.
    let across = (!near(inner.from) && inner.from != 0 && near(inner.to))
        .then(|| {
            outer
                .iter()
                .enumerate()
                .filter(|(_, step)| near(step.from))
                .min_by_key(|(_, step)| step.from.unsigned_abs())
        })
        .flatten();
    if let Some((number, across)) = across {
        let mut rest: SmallVec<[Loop; 4]> = outer.into();
        rest.remove(number);
        if inner.len < 8 {
            // Such as the colours of pixels: too few for squares, and their lines stay in the cache.
            rest.push(inner.clone());
            walk(&rest, steps.from, steps.to, &mut |here, there| {
                // SAFETY: that of the caller.
                unsafe { copy_row::<WIDTH>(from.wrapping_offset(here), to.wrapping_offset(there), across) };
                true
            });
            return;
        }
        walk(&rest, steps.from, steps.to, &mut |here, there| {
            // SAFETY: that of the caller.
            unsafe {
                copy_tiles::<WIDTH, TILE, MANY>(from.wrapping_offset(here), to.wrapping_offset(there), across, inner);
            }
            true
        });
    } else {
        walk(outer, steps.from, steps.to, &mut |here, there| {
            // SAFETY: that of the caller.
            unsafe { copy_row::<WIDTH>(from.wrapping_offset(here), to.wrapping_offset(there), inner) };
            true
        });
    }
}

/// Copy the elements of one loop.
///
/// # Safety
/// As [`copy`].
#[inline]
unsafe fn copy_row<const WIDTH: usize>(from: *const u8, to: *mut u8, step: &Loop) {
    // SAFETY: that of the caller.
    let one = |here: isize, there: isize| unsafe {
        copy_word::<WIDTH>(from.wrapping_offset(here), to.wrapping_offset(there));
    };
    match &step.places {
        Some(places) => places.iter().for_each(|&(here, there)| one(here, there)),
        // That one side is without gaps is worth knowing beforehand.
        None if step.to == signed(WIDTH) => {
            for number in 0..signed(step.len) {
                one(number * step.from, number * signed(WIDTH));
            }
        }
        None => {
            for number in 0..signed(step.len) {
                one(number * step.from, number * step.to);
            }
        }
    }
}

/// Copy the elements of two loops: with small steps where they come from along `across`, and where they go along
/// `along`.
///
/// They are taken in squares as wide as a line of the cache, so that each line is touched once, and by way of a square
/// of our own: lines of arrays whose lengths are powers of two would drive each other out of the cache.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_tiles<const WIDTH: usize, const TILE: usize, const MANY: usize>(
    from: *const u8,
    to: *mut u8,
    across: &Loop,
    along: &Loop,
) {
    let mut tile = [[[0_u8; WIDTH]; TILE]; TILE];
    let is_dense = across.is_run() && along.is_run() && across.from == signed(WIDTH) && along.to == signed(WIDTH);
    // All of a block before the next one: as long as it takes, so do the pages of memory that its lines
    // are in.
    let side = BLOCK.max(TILE);
    let blocks = (0..across.len).step_by(side).flat_map(|row| (0..along.len).step_by(side).map(move |at| (row, at)));
    let tiles = blocks.flat_map(|(row, column)| {
        let (bottom, right) = (across.len.min(row + side), along.len.min(column + side));
        (column..right).step_by(TILE).flat_map(move |column| (row..bottom).step_by(TILE).map(move |row| (row, column)))
    });
    for (row, column) in tiles {
        let columns = TILE.min(along.len - column);
        let rows = TILE.min(across.len - row);
        if is_dense && columns == TILE && rows == TILE {
            let ((here, there), (over, down)) = (along.at(column), across.at(row));
            let (from, to) = (from.wrapping_offset(here + over), to.wrapping_offset(there + down));
            // SAFETY: that of the caller; on either side as many elements are side by side as fill a line.
            unsafe { copy_tile::<WIDTH, TILE, MANY>(from, to, along.from, across.to) };
            continue;
        }
        for number in 0..columns {
            let (here, _) = along.at(column + number);
            for (other, words) in tile[..rows].iter_mut().enumerate() {
                let (over, _) = across.at(row + other);
                // SAFETY: that of the caller.
                words[number] = unsafe { from.wrapping_offset(here + over).cast::<[u8; WIDTH]>().read() };
            }
        }
        for (other, words) in tile[..rows].iter().enumerate() {
            let (_, down) = across.at(row + other);
            for (number, word) in words[..columns].iter().enumerate() {
                let (_, there) = along.at(column + number);
                // SAFETY: that of the caller.
                unsafe { to.wrapping_offset(there + down).cast::<[u8; WIDTH]>().write(*word) };
            }
        }
    }
}

/// As many bytes as processors of today work on at once.
pub type Vector = [u8; VECTOR];
/// The bytes of a vector.
pub const VECTOR: usize = 16;

/// Copy `TILE` lines of this many elements, at the distance `stride`, to the columns of the same number of lines, at
/// the distance `step`.
///
/// # Safety
/// All lines are there.
unsafe fn copy_tile<const WIDTH: usize, const TILE: usize, const MANY: usize>(
    from: *const u8,
    to: *mut u8,
    stride: isize,
    step: isize,
) {
    let mut tile = [[[0_u8; VECTOR]; LINE / VECTOR]; TILE];
    for part in 0..LINE / VECTOR {
        for (place, lines) in tile.chunks_exact_mut(MANY).enumerate() {
            let start = from.wrapping_add(place * VECTOR);
            let mut square = [[0; VECTOR]; MANY];
            for (number, line) in square.iter_mut().enumerate() {
                // SAFETY: that of the caller.
                *line = unsafe { start.wrapping_offset(signed(part * MANY + number) * stride).cast::<Vector>().read() };
            }
            for (line, turned) in lines.iter_mut().zip(transposed::<WIDTH, MANY>(square)) {
                line[part] = turned;
            }
        }
    }
    for (number, line) in tile.into_iter().enumerate() {
        // SAFETY: that of the caller.
        unsafe { to.wrapping_offset(signed(number) * step).cast::<[Vector; LINE / VECTOR]>().write(line) };
    }
}

/// Rows of elements as columns of their bytes: each round of merging two halves moves one bit of the number of the row
/// into the number of the column.
#[inline]
#[must_use]
pub fn transposed<const WIDTH: usize, const MANY: usize>(rows: [Vector; MANY]) -> [Vector; MANY] {
    merged::<WIDTH, MANY>(rows, MANY.ilog2())
}

/// Rows whose two halves were merged so many times: after as many rounds as the number of all elements has bits, they are
/// what they were.
#[inline]
#[must_use]
pub fn merged<const WIDTH: usize, const MANY: usize>(mut rows: [Vector; MANY], rounds: u32) -> [Vector; MANY] {
    for _ in 0..rounds {
        let mut merged = rows;
        for number in 0..MANY / 2 {
            let (low, high) = merge::<WIDTH>(rows[number], rows[number + MANY / 2]);
            merged[2 * number] = low;
            merged[2 * number + 1] = high;
        }
        rows = merged;
    }
    rows
}

/// The elements of two vectors by turns.
#[cfg(target_arch = "x86_64")]
#[inline]
fn merge<const WIDTH: usize>(one: Vector, other: Vector) -> (Vector, Vector) {
    use std::arch::x86_64 as arch;
    // SAFETY: every processor of this kind has these instructions (SSE2), and a vector is 16 bytes.
    unsafe {
        let one = std::mem::transmute::<Vector, arch::__m128i>(one);
        let other = std::mem::transmute::<Vector, arch::__m128i>(other);
        let (low, high) = match WIDTH {
            1 => (arch::_mm_unpacklo_epi8(one, other), arch::_mm_unpackhi_epi8(one, other)),
            2 => (arch::_mm_unpacklo_epi16(one, other), arch::_mm_unpackhi_epi16(one, other)),
            4 => (arch::_mm_unpacklo_epi32(one, other), arch::_mm_unpackhi_epi32(one, other)),
            _ => (arch::_mm_unpacklo_epi64(one, other), arch::_mm_unpackhi_epi64(one, other)),
        };
        (std::mem::transmute::<arch::__m128i, Vector>(low), std::mem::transmute::<arch::__m128i, Vector>(high))
    }
}

#[cfg(not(target_arch = "x86_64"))]
use merge_anywhere as merge;

/// The elements of two vectors by turns, on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline]
fn merge_anywhere<const WIDTH: usize>(one: Vector, other: Vector) -> (Vector, Vector) {
    let mut both = [[0; VECTOR]; 2];
    for (number, words) in both.as_flattened_mut().chunks_exact_mut(2 * WIDTH).enumerate() {
        words[..WIDTH].copy_from_slice(&one[number * WIDTH..][..WIDTH]);
        words[WIDTH..].copy_from_slice(&other[number * WIDTH..][..WIDTH]);
    }
    (both[0], both[1])
}

/// Bytes of elements that are copied at once where one element is to be everywhere.
const PATTERN: usize = 4096;

/// Set elements to one value.
///
/// # Safety
/// All that the loops reach from `to` are there.
unsafe fn fill(element: &[u8], to: *mut u8, mut steps: Steps) {
    if steps.item == element.len() {
        for step in &mut steps.loops {
            step.from = 0;
            for place in step.places.iter_mut().flatten() {
                place.0 = 0;
            }
        }
        steps.from = 0;
        // SAFETY: that of the caller.
        unsafe { copy(element.as_ptr(), to, &steps) };
        return;
    }
    let is_uniform = element.iter().all(|&byte| byte == element[0]);
    let pattern =
        if is_uniform { Vec::new() } else { element.repeat((steps.item.min(PATTERN) / element.len()).max(1)) };
    walk(&steps.loops, steps.from, steps.to, &mut |_, there| {
        // SAFETY: that of the caller; what was fused into one item is side by side.
        let run = unsafe { slice::from_raw_parts_mut(to.offset(there), steps.item) };
        if is_uniform {
            run.fill(element[0]);
        } else {
            run.chunks_mut(pattern.len()).for_each(|part| part.copy_from_slice(&pattern[..part.len()]));
        }
        true
    });
}

/// Whether all elements have the bytes `element`.
///
/// # Safety
/// As [`fill`].
unsafe fn holds(element: &[u8], at: *const u8, steps: &Steps) -> bool {
    walk(&steps.loops, steps.from, steps.to, &mut |_, there| {
        // SAFETY: that of the caller; what was fused into one item is side by side.
        let run = unsafe { slice::from_raw_parts(at.offset(there), steps.item) };
        // All elements are like the first if each is like the one before it.
        run[..element.len()] == *element && run[element.len()..] == run[..run.len() - element.len()]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::plan::List;

    /// Numbers that are the same in every run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % end.max(1)
        }

        fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
            for at in (1..items.len()).rev() {
                items.swap(at, self.below(at + 1));
            }
            items
        }

        fn bytes(&mut self, size: usize) -> Vec<u8> {
            (0..size).map(|_| self.below(256).to_le_bytes()[0]).collect()
        }

        /// Places below `end`; `len` of them if it is given.
        fn places(&mut self, end: usize, len: Option<usize>, repeats: bool) -> Places {
            let wanted = len.unwrap_or_else(|| self.below(end + 1));
            if end == 0 || wanted == 0 {
                return Places::first(0);
            }
            if self.below(3) == 0 {
                let list = if repeats {
                    (0..wanted).map(|_| self.below(end)).collect()
                } else {
                    self.shuffled((0..end).collect())[..wanted].to_vec()
                };
                return Places::List(List::new(list.into_iter().map(|place| i64::try_from(place).unwrap()).collect()));
            }
            let most = if wanted == 1 { 3 } else { (end - 1) / (wanted - 1) };
            let step = if self.below(2) == 0 { 1 } else { 1 + self.below(most) };
            let span = step * (wanted - 1);
            let first = i64::try_from(self.below(end - span)).unwrap();
            let (step, span) = (i64::try_from(step).unwrap(), i64::try_from(span).unwrap());
            if self.below(3) == 0 {
                Places::Range { start: first + span, step: -step, len: wanted }
            } else {
                Places::Range { start: first, step, len: wanted }
            }
        }
    }

    impl Random {
        /// Places along an axis of a chunk, and along one of an array, whose length is added to `shape`.
        fn axis(&mut self, len: usize, shape: &mut Vec<usize>) -> Axis {
            let all = self.below(3) == 0;
            let inner = if all { Places::first(len) } else { self.places(len, None, true) };
            let room = inner.len() * (1 + self.below(2)) + self.below(2);
            shape.push(room);
            let outer =
                if all && room == len { Places::first(len) } else { self.places(room, Some(inner.len()), false) };
            Axis { inner, outer }
        }
    }

    /// A chunk, a selection, and an array with room around it.
    struct Case {
        layout: Layout,
        selection: Selection,
        shape: Vec<usize>,
        strides: Vec<isize>,
        start: usize,
        size: usize,
        /// Offsets of the selected elements in the chunk and in the room, in order.
        pairs: Vec<(usize, usize)>,
    }

    impl Case {
        fn new(random: &mut Random, broadcast: bool) -> Self {
            let item = [1, 2, 3, 4, 8, 12, 16, 33][random.below(8)];
            let is_points = random.below(3) == 0;
            let ndim = if is_points { 1 + random.below(4) } else { random.below(5) };
            let longest = if ndim < 3 && random.below(3) == 0 { 80 } else { 7 };
            let chunk: Vec<usize> =
                (0..ndim).map(|_| if random.below(20) == 0 { 0 } else { 1 + random.below(longest) }).collect();
            let order = random.shuffled((0..ndim).collect());
            let layout = Layout::new(&chunk, &order, item).unwrap();
            let mut shape = Vec::new();
            let selection = if is_points {
                let count = if chunk.contains(&0) { 0 } else { random.below(if ndim < 3 { 600 } else { 20 }) };
                shape.push(count + random.below(3));
                let dims: Vec<usize> = (0..ndim).filter(|_| random.below(3) > 0).collect();
                let dims = if dims.is_empty() { vec![random.below(ndim)] } else { dims };
                let inner = dims
                    .iter()
                    .map(|&dim| chunk[dim])
                    .map(|len| List::new((0..count).map(|_| i64::try_from(random.below(len)).unwrap()).collect()))
                    .collect();
                let outer = random.places(shape[0], Some(count), false);
                let axes: SmallVec<[Axis; 4]> = (0..ndim)
                    .filter(|dim| !dims.contains(dim))
                    .map(|dim| random.axis(chunk[dim], &mut shape))
                    .collect();
                let place = random.below(axes.len() + 1);
                let points = shape.remove(0);
                shape.insert(place, points);
                Selection::Points(Scattered { dims: dims.into(), inner, outer, place, axes })
            } else {
                Selection::Mesh(chunk.iter().map(|&len| random.axis(len, &mut shape)).collect())
            };
            // The array: axes in any order, with gaps, backwards.
            let mut strides = vec![0; shape.len()];
            let (mut size, mut start) = (item + random.below(2) * random.below(5), 0);
            let order = if random.below(2) == 0 {
                (0..shape.len()).rev().collect()
            } else {
                random.shuffled((0..shape.len()).collect())
            };
            for axis in order {
                if broadcast && random.below(3) == 0 {
                    continue;
                }
                strides[axis] = signed(size);
                if random.below(4) == 0 {
                    strides[axis] = -strides[axis];
                    start += size * shape[axis].saturating_sub(1);
                }
                size = size * shape[axis].max(1) + if random.below(4) == 0 { random.below(9) } else { 0 };
            }
            let mut case =
                Self { layout, selection, shape, strides, start: start + 5, size: size + 10, pairs: Vec::new() };
            case.pairs = case.walk();
            case
        }

        /// The simplest way to say which elements a selection means.
        fn walk(&self) -> Vec<(usize, usize)> {
            let offset = |places: &[i64]| -> usize {
                places.iter().zip(&self.layout.strides).map(|(&at, stride)| usize::try_from(at).unwrap() * stride).sum()
            };
            let place = |places: &[i64]| {
                let sum: isize =
                    places.iter().zip(&self.strides).map(|(&at, stride)| isize::try_from(at).unwrap() * stride).sum();
                self.start.checked_add_signed(sum).unwrap()
            };
            // Places along the dimensions of the chunk, and of the array, for each of the points; alone, one of nothing.
            let (mut all, axes) = match &self.selection {
                Selection::Mesh(axes) => {
                    let axes: Vec<_> = axes.iter().enumerate().map(|(dim, axis)| (dim, dim, axis)).collect();
                    (vec![(vec![0; self.layout.shape.len()], vec![0; self.shape.len()])], axes)
                }
                Selection::Points(points) => {
                    let point = |number: usize| {
                        let (mut inner, mut outer) = (vec![0; self.layout.shape.len()], vec![0; self.shape.len()]);
                        for (&dim, list) in points.dims.iter().zip(&points.inner) {
                            inner[dim] = list.as_slice()[number];
                        }
                        outer[points.place] = points.outer.at(number);
                        (inner, outer)
                    };
                    ((0..points.outer.len()).map(point).collect(), points.others().collect())
                }
            };
            for (dim, place, axis) in axes {
                all = all
                    .iter()
                    .flat_map(|(inner, outer)| {
                        (0..axis.inner.len()).map(move |number| {
                            let (mut inner, mut outer) = (inner.clone(), outer.clone());
                            inner[dim] = axis.inner.at(number);
                            outer[place] = axis.outer.at(number);
                            (inner, outer)
                        })
                    })
                    .collect();
            }
            all.iter().map(|(inner, outer)| (offset(inner), place(outer))).collect()
        }

        fn memory(&self, room: &mut [u8]) -> Memory {
            assert_eq!(room.len(), self.size);
            // SAFETY: the room is as large as shape and strides reach, and lives as long as each test needs it.
            unsafe {
                Memory::new(
                    room.as_mut_ptr().add(self.start),
                    self.shape.clone(),
                    self.strides.clone(),
                    self.layout.item,
                )
            }
        }
    }

    const CASES: usize = if cfg!(miri) { 50 } else { 2000 };

    #[test]
    fn scatter_puts_every_selected_element_into_its_place_and_touches_nothing_else() {
        let mut random = Random(1);
        for number in 0..CASES {
            let case = Case::new(&mut random, false);
            let chunk = random.bytes(case.layout.nbytes);
            let mut room = random.bytes(case.size);
            let mut wanted = room.clone();
            for &(from, to) in &case.pairs {
                wanted[to..to + case.layout.item].copy_from_slice(&chunk[from..from + case.layout.item]);
            }
            let memory = case.memory(&mut room);
            let span = case.layout.span_of(&case.selection).unwrap().unwrap_or(0..0);
            // Only the bytes that are needed.
            memory.scatter(&case.layout, &chunk[span.clone()], span.start, &case.selection).unwrap();
            assert!(room == wanted, "case {number}: {:?} {:?} {:?}", case.layout, case.strides, case.selection);
        }
    }

    #[test]
    fn gather_puts_every_selected_element_into_the_chunk_the_last_one_winning() {
        let mut random = Random(2);
        for number in 0..CASES {
            let case = Case::new(&mut random, true);
            let mut room = random.bytes(case.size);
            let mut chunk = random.bytes(case.layout.nbytes);
            let mut wanted = chunk.clone();
            for &(to, from) in &case.pairs {
                wanted[to..to + case.layout.item].copy_from_slice(&room[from..from + case.layout.item]);
            }
            case.memory(&mut room).gather(&case.layout, &mut chunk, &case.selection).unwrap();
            assert!(chunk == wanted, "case {number}: {:?} {:?} {:?}", case.layout, case.strides, case.selection);
        }
    }

    #[test]
    fn fill_sets_every_selected_element_and_nothing_else() {
        let mut random = Random(3);
        for number in 0..CASES {
            let case = Case::new(&mut random, false);
            let item = case.layout.item;
            let element = if random.below(2) == 0 { vec![7; item] } else { random.bytes(item) };
            let mut room = random.bytes(case.size);
            let mut wanted = room.clone();
            for &(_, to) in &case.pairs {
                wanted[to..to + item].copy_from_slice(&element);
            }
            case.memory(&mut room).fill(&case.layout, &element, &case.selection).unwrap();
            assert!(room == wanted, "case {number}: {:?} {:?} {:?}", case.layout, case.strides, case.selection);
        }
    }

    #[test]
    fn holds_only_looks_at_every_bit_of_every_selected_element_and_at_no_other() {
        let mut random = Random(4);
        for number in 0..CASES {
            let case = Case::new(&mut random, true);
            let item = case.layout.item;
            let element = random.bytes(item);
            let mut room = random.bytes(case.size);
            for &(_, to) in &case.pairs {
                room[to..to + item].copy_from_slice(&element);
            }
            let holds =
                |room: &mut [u8]| case.memory(room).holds_only(&case.layout, &element, &case.selection).unwrap();
            assert!(holds(&mut room), "case {number}: {:?} {:?} {:?}", case.layout, case.strides, case.selection);
            if !case.pairs.is_empty() {
                let at = case.pairs[random.below(case.pairs.len())].1 + random.below(item);
                room[at] ^= 1 << random.below(8);
                assert!(!holds(&mut room), "case {number}: {:?} {:?} {:?}", case.layout, case.strides, case.selection);
            }
        }
    }

    #[test]
    fn a_window_is_the_memory_of_a_whole_chunk_that_lies_as_in_the_array() {
        let mut random = Random(5);
        let mut windows = 0;
        for _ in 0..CASES {
            let case = Case::new(&mut random, true);
            let mut room = random.bytes(case.size);
            let copy = room.clone();
            let memory = case.memory(&mut room);
            if let Some(window) = memory.window(&case.layout, &case.selection) {
                windows += 1;
                assert_eq!(window.len(), case.layout.nbytes);
                let mut chunk = vec![0; case.layout.nbytes];
                for &(to, from) in &case.pairs {
                    chunk[to..to + case.layout.item].copy_from_slice(&copy[from..from + case.layout.item]);
                }
                assert_eq!(window, chunk);
                assert_eq!(memory.chunk(&case.layout, &case.selection).unwrap(), chunk);
            }
        }
        assert!(windows > CASES / 100);
    }

    fn mesh(pairs: &[(Places, Places)]) -> Selection {
        Selection::Mesh(
            pairs.iter().map(|(inner, outer)| Axis { inner: inner.clone(), outer: outer.clone() }).collect(),
        )
    }

    fn list(numbers: &[i64]) -> Places {
        Places::List(List::new(numbers.into()))
    }

    fn points(dims: &[usize], inner: &[i64], outer: &Places, place: usize) -> Selection {
        let inner = dims.iter().map(|_| List::new(inner.into())).collect();
        Selection::Points(Scattered { dims: dims.into(), inner, outer: outer.clone(), place, axes: SmallVec::new() })
    }

    #[test]
    fn places_that_are_not_there_are_refused() {
        let range = |start, step, len| Places::Range { start, step, len };
        let layout = Layout::new(&[4], &[0], 2).unwrap();
        let mut room = vec![0; 8];
        // SAFETY: there are four elements.
        let memory = unsafe { Memory::new(room.as_mut_ptr(), vec![4], vec![2], 2) };
        let bad = [
            range(-1, 1, 2),
            range(3, 1, 2),
            range(0, -1, 2),
            range(0, 1 << 62, 5), // the last of which is 0, had numbers 64 bits only
            range(i64::MAX, 1, 2),
            range(0, i64::MIN, 2),
            list(&[0, 4]),
            list(&[-1, 0]),
            list(&[i64::MIN, i64::MAX]),
        ];
        for places in bad {
            for selection in [
                mesh(&[(places.clone(), range(0, 1, places.len().min(4)))]),
                mesh(&[(Places::first(places.len()), places.clone())]),
                mesh(&[(places.clone(), places.clone())]),
                points(&[0], &[0, 9], &places, 0),
                points(&[0], &[0, 1], &places, 0),
                points(&[0], &[0, 1], &Places::first(2), 1),
                points(&[1], &[0, 1], &Places::first(2), 0),
                points(&[], &[], &Places::first(2), 0),
            ] {
                let kind = |result: Result<()>| result.unwrap_err().kind;
                assert_eq!(kind(memory.scatter(&layout, &[0; 8], 0, &selection)), Kind::Refused, "{selection:?}");
                assert_eq!(kind(memory.gather(&layout, &mut [0; 8], &selection)), Kind::Refused, "{selection:?}");
                assert_eq!(kind(memory.fill(&layout, &[0; 2], &selection)), Kind::Refused, "{selection:?}");
                assert!(memory.holds_only(&layout, &[0; 2], &selection).is_err(), "{selection:?}");
                assert!(memory.window(&layout, &selection).is_none(), "{selection:?}");
            }
        }
    }

    #[test]
    fn chunks_that_do_not_fit_are_refused() {
        let layout = Layout::new(&[4], &[0], 2).unwrap();
        let mut room = vec![0; 8];
        // SAFETY: there are four elements.
        let memory = unsafe { Memory::new(room.as_mut_ptr(), vec![4], vec![2], 2) };
        let all = mesh(&[(Places::first(4), Places::first(4))]);
        assert!(memory.scatter(&layout, &[0; 7], 0, &all).is_err());
        assert!(memory.scatter(&layout, &[0; 7], 1, &all).is_err());
        assert!(memory.scatter(&layout, &[0; 8], usize::MAX, &all).is_err());
        assert!(memory.gather(&layout, &mut [0; 7], &all).is_err());
        assert!(memory.fill(&layout, &[0; 3], &all).is_err());
        assert!(memory.holds_only(&layout, &[0; 1], &all).is_err());
        let wide = Layout::new(&[4], &[0], 4).unwrap();
        assert!(memory.scatter(&wide, &[0; 16], 0, &all).is_err());
        assert!(memory.window(&wide, &all).is_none());
        let flat = Layout::new(&[2, 2], &[0, 1], 2).unwrap();
        assert!(memory.scatter(&flat, &[0; 8], 0, &all).is_err());
        assert!(memory.scatter(&layout, &[0; 8], 0, &mesh(&[])).is_err());
        for broken in [
            Layout { strides: vec![usize::MAX], ..layout.clone() },
            Layout { strides: vec![], ..layout.clone() },
            Layout { shape: vec![], ..layout.clone() },
        ] {
            assert!(memory.scatter(&broken, &[0; 8], 0, &all).is_err());
            assert!(memory.window(&broken, &all).is_none());
        }
        assert!(memory.window(&Layout { nbytes: 1 << 40, ..layout.clone() }, &all).is_none());
    }

    #[test]
    fn arrays_of_any_lengths_and_item_sizes_are_transposed() {
        let mut random = Random(6);
        for item in [1, 2, 4, 8, 16] {
            for (rows, columns) in [(130, 133), (64, 16), (3, 150), (150, 3), (65, 257)] {
                let layout = Layout::new(&[rows, columns], &[1, 0], item).unwrap();
                let chunk = random.bytes(layout.nbytes);
                let mut wanted = vec![0; layout.nbytes];
                for (number, place) in wanted.chunks_exact_mut(item).enumerate() {
                    let from = (number % columns * rows + number / columns) * item;
                    place.copy_from_slice(&chunk[from..from + item]);
                }
                let mut room = vec![0; layout.nbytes];
                let strides = vec![signed(columns * item), signed(item)];
                // SAFETY: there are as many elements.
                let memory = unsafe { Memory::new(room.as_mut_ptr(), vec![rows, columns], strides, item) };
                let all = mesh(&[
                    (Places::first(rows), Places::first(rows)),
                    (Places::first(columns), Places::first(columns)),
                ]);
                memory.scatter(&layout, &chunk, 0, &all).unwrap();
                assert!(room == wanted, "{rows} x {columns} of {item} bytes");
                let mut back = vec![0; layout.nbytes];
                memory.gather(&layout, &mut back, &all).unwrap();
                assert!(back == chunk, "{rows} x {columns} of {item} bytes");
            }
        }
    }

    #[test]
    fn vectors_are_merged_alike_on_all_processors() {
        let mut random = Random(7);
        let vector = |random: &mut Random| Vector::try_from(random.bytes(VECTOR)).unwrap();
        let (one, other) = (vector(&mut random), vector(&mut random));
        assert_eq!(merge::<1>(one, other), merge_anywhere::<1>(one, other));
        assert_eq!(merge::<2>(one, other), merge_anywhere::<2>(one, other));
        assert_eq!(merge::<4>(one, other), merge_anywhere::<4>(one, other));
        assert_eq!(merge::<8>(one, other), merge_anywhere::<8>(one, other));
    }

    #[test]
    fn chunks_larger_than_memory_are_refused() {
        assert!(Layout::new(&[1 << 32, 1 << 32], &[0, 1], 1).is_err());
        assert!(Layout::new(&[usize::MAX], &[0], 2).is_err());
    }
}
