//! The bytes of a decoded chunk that a selection needs.

use std::ops::Range;

use crate::error::Result;
use crate::plan::{Places, Scattered, Selection};
use crate::scatter::Layout;

/// Convert a place that has been checked to be in the chunk.
fn as_usize(place: i64) -> usize {
    usize::try_from(place).unwrap_or(0)
}

/// Bytes of a decoded chunk that are needed.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The needed bytes, in order, and perhaps some between them.
    pub runs: Vec<Range<usize>>,
    /// [`Layout::span_of`] the selection, or of all selections that need these bytes. All runs are within it. It may be longer
    /// than from the first run to the last one: of points it is a bounding box.
    pub span: Range<usize>,
}

impl Runs {
    /// Return how many bytes the runs have.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }

    /// Return the runs of both. Those with at most `gap` bytes between them become one.
    #[must_use]
    pub fn united(mut self, other: Self, gap: usize) -> Self {
        if self.runs.is_empty() {
            return other;
        }
        self.runs.extend(other.runs);
        let span = self.span.start.min(other.span.start)..self.span.end.max(other.span.end);
        Self { runs: merged(self.runs, gap), span }
    }
}

/// Return the bytes that hold what is selected. Runs with at most `gap` bytes between them are one.
///
/// # Errors
/// If a place is outside the chunk.
pub fn runs_of(layout: &Layout, selection: &Selection, gap: usize) -> Result<Runs> {
    let Some(span) = layout.span_of(selection)? else { return Ok(Runs::default()) };
    let mut places: Vec<Option<&Places>> = vec![None; layout.shape.len()];
    let mut points = None;
    match selection {
        Selection::Mesh(axes) => places.iter_mut().zip(axes).for_each(|(place, axis)| *place = Some(&axis.inner)),
        Selection::Points(scattered) => {
            scattered.others().for_each(|(dim, _, axis)| places[dim] = Some(&axis.inner));
            points = Some(scattered);
        }
    }
    // From the axis along which elements are closest: as long as they are close, they are one run.
    let mut by_stride: Vec<usize> = (0..places.len()).collect();
    by_stride.sort_by_key(|&axis| layout.strides[axis]);
    let mut run = layout.item;
    let mut base = 0;
    let mut is_over = false;
    let mut outer = Vec::new();
    for axis in by_stride {
        let Some(places) = places[axis] else {
            is_over = true;
            continue;
        };
        let Some((low, high)) = places.bounds() else { return Ok(Runs::default()) };
        let (low, high) = (as_usize(low), as_usize(high));
        let is_close = match places {
            Places::Range { step, len, .. } => {
                *len <= 1 || as_usize(*step).saturating_mul(layout.strides[axis]) <= run.saturating_add(gap)
            }
            Places::List(_) => low == high,
        };
        if !is_over && is_close {
            run += (high - low) * layout.strides[axis];
            base += low * layout.strides[axis];
        } else {
            is_over = true;
            outer.push((axis, places));
        }
    }
    let mut starts = match points {
        None => vec![base],
        Some(Scattered { dims, inner, outer, .. }) => {
            // One dimension after the other: there may be very many points.
            let mut starts = vec![base; outer.len()];
            for (list, &dim) in inner.iter().zip(dims.iter()) {
                let stride = layout.strides[dim];
                starts.iter_mut().zip(list.as_slice()).for_each(|(start, &place)| *start += as_usize(place) * stride);
            }
            starts
        }
    };
    for (axis, places) in outer {
        starts = (0..places.len())
            .flat_map(|at| {
                let offset = as_usize(places.at(at)) * layout.strides[axis];
                starts.iter().map(move |start| start + offset)
            })
            .collect();
    }
    debug_assert!(starts.iter().all(|start| span.start <= *start && start + run <= span.end));
    let runs = starts.into_iter().map(|start| start..start + run).collect();
    Ok(Runs { runs: merged(runs, gap), span })
}

/// Sort runs, and join those with at most `gap` bytes between them.
#[must_use]
pub fn merged(mut runs: Vec<Range<usize>>, gap: usize) -> Vec<Range<usize>> {
    runs.sort_unstable_by_key(|run| run.start);
    runs.dedup_by(|next, run| {
        let is_near = next.start <= run.end + gap;
        if is_near {
            run.end = run.end.max(next.end);
        }
        is_near
    });
    runs
}
