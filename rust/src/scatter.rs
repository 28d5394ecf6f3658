//! Moving elements between a chunk and the caller's memory.
//!
//! The caller's memory is an array of any strides, which several threads fill at once, each with pieces of its own:
//! that no two pieces of a plan share an element is what makes this sound, and is why it is unsafe to make one.
#![allow(unsafe_code)]

use std::ptr;

use crate::error::{Error, Result};
use crate::plan::{Places, Selection};

/// How the elements of a chunk lie in its bytes.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Elements along each dimension.
    pub shape: Vec<usize>,
    /// Bytes from one element to the next along each dimension: those of an array whose axes are permuted.
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

    /// The bytes from the first to behind the last element that is selected; None if nothing is.
    ///
    /// # Errors
    /// If a place lies outside the chunk.
    pub fn span_of(&self, selection: &Selection) -> Result<Option<std::ops::Range<usize>>> {
        let (mut low, mut high) = (0, self.item);
        let mut add = |places: &[i64], axis: usize| -> Result<bool> {
            let (Some(&first), Some(&last)) = (places.iter().min(), places.iter().max()) else { return Ok(false) };
            let (first, last) = (usize::try_from(first), usize::try_from(last));
            match (first, last) {
                (Ok(first), Ok(last)) if last < self.shape[axis] => {
                    low += first * self.strides[axis];
                    high += last * self.strides[axis];
                    Ok(true)
                }
                _ => Err(Error::refused("a place outside the chunk")),
            }
        };
        match selection {
            Selection::Mesh(axes) => {
                if axes.len() != self.shape.len() {
                    return Err(Error::refused("another number of dimensions"));
                }
                for (number, axis) in axes.iter().enumerate() {
                    let Some((first, last)) = axis.inner.bounds() else { return Ok(None) };
                    add(&[first, last], number)?;
                }
            }
            Selection::Points { inner, .. } => {
                if inner.len() != self.shape.len() {
                    return Err(Error::refused("another number of dimensions"));
                }
                for (number, list) in inner.iter().enumerate() {
                    if !add(list.as_slice(), number)? {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(low..high))
    }
}

/// An array of the caller's: to be filled, or to take values from.
#[derive(Clone, Debug)]
pub struct Memory {
    start: *mut u8,
    shape: Vec<usize>,
    strides: Vec<isize>,
    item: usize,
}

// SAFETY: whoever makes one promises that threads may use it at once, for elements of their own.
unsafe impl Send for Memory {}
// SAFETY: the same.
unsafe impl Sync for Memory {}

impl Memory {
    /// An array whose first element lies at `start`.
    ///
    /// # Safety
    /// For as long as the value or a clone of it lives, all elements that shape and strides reach must be there; those
    /// that are filled may be written, each by one thread, and be read by no other meanwhile.
    #[must_use]
    pub unsafe fn new(start: *mut u8, shape: Vec<usize>, strides: Vec<isize>, item: usize) -> Self {
        assert_eq!(shape.len(), strides.len());
        Self { start, shape, strides, item }
    }

    /// Bytes of an element.
    #[must_use]
    pub fn item(&self) -> usize {
        self.item
    }

    /// Check that all places lie inside, on both sides, and that chunk and array have elements of one size.
    fn check(&self, selection: &Selection, layout: &Layout, available: &std::ops::Range<usize>) -> Result<bool> {
        let outside = || Error::refused("a place outside the buffer");
        let inside = |places: &Places, len: usize| match places.bounds() {
            None => true,
            Some((low, high)) => low >= 0 && usize::try_from(high).is_ok_and(|high| high < len),
        };
        match selection {
            Selection::Mesh(axes) => {
                if axes.len() != self.shape.len() {
                    return Err(outside());
                }
                for (axis, &len) in axes.iter().zip(&self.shape) {
                    if axis.inner.len() != axis.outer.len() || !inside(&axis.outer, len) {
                        return Err(outside());
                    }
                }
            }
            Selection::Points { inner, outer } => {
                if self.shape.len() != 1
                    || !inside(outer, self.shape[0])
                    || inner.iter().any(|list| list.as_slice().len() != outer.len())
                {
                    return Err(outside());
                }
            }
        }
        if layout.item != self.item {
            return Err(Error::refused("elements of another size"));
        }
        match layout.span_of(selection)? {
            None => Ok(false),
            Some(span) if span.start >= available.start && span.end <= available.end => Ok(true),
            Some(_) => Err(Error::refused("bytes that are not there")),
        }
    }

    /// Put the selected elements of a chunk into their places.
    ///
    /// `bytes` are those of the chunk from `base` on, and must reach as far as the selection does.
    ///
    /// # Errors
    /// If a place lies outside the chunk, its bytes, or the array.
    pub fn scatter(&self, layout: &Layout, bytes: &[u8], base: usize, selection: &Selection) -> Result<()> {
        if !self.check(selection, layout, &(base..base + bytes.len()))? {
            return Ok(());
        }
        // SAFETY: all places have been checked.
        self.each(layout, selection, |offset, place| unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr().add(offset - base), place, self.item);
        });
        Ok(())
    }

    /// Put the selected elements of the array into their places in a chunk, all bytes of which are in `bytes`.
    ///
    /// # Errors
    /// If a place lies outside the chunk, its bytes, or the array.
    pub fn gather(&self, layout: &Layout, bytes: &mut [u8], selection: &Selection) -> Result<()> {
        if !self.check(selection, layout, &(0..bytes.len()))? {
            return Ok(());
        }
        let start = bytes.as_mut_ptr();
        // SAFETY: all places have been checked.
        self.each(layout, selection, |offset, place| unsafe {
            ptr::copy_nonoverlapping(place, start.add(offset), self.item);
        });
        Ok(())
    }

    /// Set all selected elements to one value, of the bytes `element`.
    ///
    /// # Errors
    /// If a place lies outside the chunk or the array.
    pub fn fill(&self, layout: &Layout, element: &[u8], selection: &Selection) -> Result<()> {
        if element.len() != self.item || !self.check(selection, layout, &(0..layout.nbytes))? {
            return Ok(());
        }
        // SAFETY: all places have been checked.
        self.each(layout, selection, |_, place| unsafe {
            ptr::copy_nonoverlapping(element.as_ptr(), place, self.item);
        });
        Ok(())
    }

    /// Whether all selected elements have the bytes `element`.
    ///
    /// # Errors
    /// If a place lies outside the chunk or the array.
    pub fn holds_only(&self, layout: &Layout, element: &[u8], selection: &Selection) -> Result<bool> {
        if element.len() != self.item || !self.check(selection, layout, &(0..layout.nbytes))? {
            return Ok(true);
        }
        let mut same = true;
        self.each(layout, selection, |_, place| {
            // SAFETY: all places have been checked.
            same = same && unsafe { std::slice::from_raw_parts(place, self.item) } == element;
        });
        Ok(same)
    }

    /// The memory that the selected elements of a chunk fill, if they are all elements of it and lie there as in the
    /// chunk; None otherwise.
    ///
    /// Each piece of a plan may be asked for once at a time.
    #[must_use]
    #[allow(clippy::mut_from_ref)]
    pub fn window(&self, layout: &Layout, selection: &Selection) -> Option<&mut [u8]> {
        let start = self.place_of_window(layout, selection)?;
        // SAFETY: the elements are there, lie side by side, and belong to this piece alone.
        Some(unsafe { std::slice::from_raw_parts_mut(start, layout.nbytes) })
    }

    /// The same, to be read: the bytes of a whole chunk, if they lie in the array as in the chunk.
    #[must_use]
    pub fn chunk(&self, layout: &Layout, selection: &Selection) -> Option<&[u8]> {
        let start = self.place_of_window(layout, selection)?;
        // SAFETY: the elements are there, and lie side by side.
        Some(unsafe { std::slice::from_raw_parts(start, layout.nbytes) })
    }

    fn place_of_window(&self, layout: &Layout, selection: &Selection) -> Option<*mut u8> {
        let Selection::Mesh(axes) = selection else { return None };
        if axes.len() != self.shape.len() || axes.len() != layout.shape.len() || layout.item != self.item {
            return None;
        }
        let mut offset = 0;
        for (number, axis) in axes.iter().enumerate() {
            let len = layout.shape[number];
            let Places::Range { start, step, len: outer } = axis.outer else { return None };
            let first = usize::try_from(start).ok()?;
            if !axis.inner.covers(len) || outer != len || first.checked_add(len)? > self.shape[number] {
                return None;
            }
            if len > 1 && (step != 1 || self.strides[number] != isize::try_from(layout.strides[number]).ok()?) {
                return None;
            }
            offset += isize::try_from(first).ok()? * self.strides[number];
        }
        // SAFETY: the first element is one of the array's.
        Some(unsafe { self.start.offset(offset) })
    }

    /// Call `visit` with the offset in the chunk and the place in the array of each selected element.
    fn each(&self, layout: &Layout, selection: &Selection, mut visit: impl FnMut(usize, *mut u8)) {
        let as_usize = |place: i64| usize::try_from(place).unwrap_or(0);
        match selection {
            Selection::Points { inner, outer } => {
                for point in 0..outer.len() {
                    let offset: usize = inner
                        .iter()
                        .zip(&layout.strides)
                        .map(|(list, stride)| as_usize(list.as_slice()[point]) * stride)
                        .sum();
                    // SAFETY: checked by the caller.
                    visit(offset, unsafe { self.start.offset(outer.at(point) as isize * self.strides[0]) });
                }
            }
            Selection::Mesh(axes) => {
                let mut at = vec![0; axes.len()];
                loop {
                    let mut offset = 0;
                    let mut place = 0;
                    for (number, axis) in axes.iter().enumerate() {
                        offset += as_usize(axis.inner.at(at[number])) * layout.strides[number];
                        place += axis.outer.at(at[number]) as isize * self.strides[number];
                    }
                    // SAFETY: checked by the caller.
                    visit(offset, unsafe { self.start.offset(place) });
                    let Some(axis) = (0..axes.len()).rev().find(|&axis| at[axis] + 1 < axes[axis].inner.len()) else {
                        return;
                    };
                    at[axis] += 1;
                    at[axis + 1..].fill(0);
                }
            }
        }
    }
}
