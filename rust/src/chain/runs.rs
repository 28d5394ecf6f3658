//! Which bytes of a chunk to fetch, where not all of them are needed.

use std::ops::Range;

use crate::error::Result;
use crate::plan::{Places, Selection};
use crate::scatter::Layout;

/// A place that has been checked.
fn as_usize(place: i64) -> usize {
    usize::try_from(place).unwrap_or(0)
}

/// The runs of bytes that hold what is selected, in order; those with gaps of no more than `gap` bytes are one.
///
/// # Errors
/// If a place lies outside the chunk.
pub fn runs_of(layout: &Layout, selection: &Selection, gap: usize) -> Result<Vec<Range<usize>>> {
    let Some(span) = layout.span_of(selection)? else { return Ok(Vec::new()) };
    let mut starts = match selection {
        Selection::Mesh(axes) => {
            // From the axis along which elements lie closest: as long as they lie close, they are one run.
            let mut by_stride: Vec<usize> = (0..axes.len()).collect();
            by_stride.sort_by_key(|&axis| layout.strides[axis]);
            let mut run = layout.item;
            let mut base = 0;
            let mut outer = Vec::new();
            for axis in by_stride {
                let places = &axes[axis].inner;
                let Some((low, high)) = places.bounds() else { return Ok(Vec::new()) };
                let (low, high) = (as_usize(low), as_usize(high));
                let is_close = match places {
                    Places::Range { step, len, .. } => {
                        *len <= 1 || as_usize(*step).saturating_mul(layout.strides[axis]) <= run.saturating_add(gap)
                    }
                    Places::List(_) => low == high,
                };
                if outer.is_empty() && is_close {
                    run += (high - low) * layout.strides[axis];
                    base += low * layout.strides[axis];
                } else {
                    outer.push(axis);
                }
            }
            let mut starts = vec![base];
            for axis in outer {
                let places = &axes[axis].inner;
                starts = (0..places.len())
                    .flat_map(|at| {
                        let offset = as_usize(places.at(at)) * layout.strides[axis];
                        starts.iter().map(move |start| start + offset)
                    })
                    .collect();
            }
            starts.sort_unstable();
            starts.into_iter().map(|start| start..start + run).collect::<Vec<_>>()
        }
        Selection::Points { inner, outer } => {
            let offset = |point: usize| -> usize {
                inner.iter().zip(&layout.strides).map(|(list, stride)| as_usize(list.as_slice()[point]) * stride).sum()
            };
            let mut starts: Vec<usize> = (0..outer.len()).map(offset).collect();
            starts.sort_unstable();
            starts.into_iter().map(|start| start..start + layout.item).collect()
        }
    };
    debug_assert!(starts.iter().all(|run| span.start <= run.start && run.end <= span.end));
    starts.dedup_by(|next, run| {
        let is_near = next.start <= run.end + gap;
        if is_near {
            run.end = run.end.max(next.end);
        }
        is_near
    });
    Ok(starts)
}
