// Makes static/coastline.txt: node coastline.mjs land-110m.json
//
// The input is land-110m.json of https://github.com/topojson/world-atlas 2.0.2: the land of Natural Earth at 1:110 million
// (https://www.naturalearthdata.com), which is in the public domain. Points that move a line by less than 0.05 degrees are
// left out, and edges of the map, which are no coast: along 180 degrees and at the South Pole.
//
// A line of the output is a line of coast, in tenths of degrees: longitude and latitude of its first point, and how
// much each following one lies farther east and north.
import { readFileSync, writeFileSync } from "node:fs";

const { arcs, transform } = JSON.parse(readFileSync(process.argv[2], "utf8"));

function degrees(arc) {
  let [x, y] = [0, 0];
  return arc.map(([east, north]) => {
    [x, y] = [x + east, y + north];
    return [x * transform.scale[0] + transform.translate[0], y * transform.scale[1] + transform.translate[1]];
  });
}

/** Ramer, Douglas and Peucker. */
function simplified(line, most) {
  const [[x0, y0], [x1, y1]] = [line[0], line[line.length - 1]];
  const length = Math.hypot(x1 - x0, y1 - y0);
  let [farthest, at] = [most, 0];
  for (let i = 1; i < line.length - 1; i++) {
    const [x, y] = line[i];
    const distance = length ? Math.abs((x1 - x0) * (y0 - y) - (x0 - x) * (y1 - y0)) / length : Math.hypot(x - x0, y - y0);
    if (distance > farthest) [farthest, at] = [distance, i];
  }
  return at ? [...simplified(line.slice(0, at + 1), most).slice(0, -1), ...simplified(line.slice(at), most)] : [line[0], line[line.length - 1]];
}

/** A line along the edge of the map, or from one side of it to the other: that is no coast. */
const isEdge = ([x0, y0], [x1, y1]) => (Math.abs(x0) > 179.9 && Math.abs(x1) > 179.9) || (y0 < -89.9 && y1 < -89.9) || Math.abs(x1 - x0) > 180;

const lines = arcs.map(degrees).flatMap((points) => {
  const parts = [[]];
  points.forEach((point, i) => {
    if (i && isEdge(points[i - 1], point)) parts.push([]);
    parts[parts.length - 1].push(point);
  });
  return parts
    .filter((part) => part.length > 1)
    .map((part) => simplified(part, 0.05).map((point) => point.map((value) => Math.round(10 * value))))
    .map((part) => part.filter((point, i) => !i || String(point) !== String(part[i - 1])));
});
const text = lines
  .filter((line) => line.length > 1)
  .map((line) => line.map(([x, y], i) => (i ? [x - line[i - 1][0], y - line[i - 1][1]] : [x, y])).join(" "))
  .join("\n");
writeFileSync(new URL("static/coastline.txt", import.meta.url), `${text}\n`);
