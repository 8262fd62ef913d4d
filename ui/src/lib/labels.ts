// Names beside the points of a drawing, so that none covers another or a point.

export interface Point {
  id: string;
  x: number;
  y: number;
  text: string;
}

export interface Label {
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const LETTER = 6.7; // mean width of a letter, on the safe side
const TALL = 14;
const AWAY = 11;

/** Place the names in order; one for which no side of its point is free is left out. */
export function placeLabels(points: Point[], wanted: Point[], wide: number, high: number): Map<string, Label> {
  const taken: Box[] = points.map(({ x, y }) => ({ left: x - 8, right: x + 8, top: y - 8, bottom: y + 8 }));
  const isFree = (box: Box) =>
    box.left >= 0 &&
    box.right <= wide &&
    box.top >= 0 &&
    box.bottom <= high &&
    !taken.some((one) => one.left < box.right && box.left < one.right && one.top < box.bottom && box.top < one.bottom);
  const placed = new Map<string, Label>();
  for (const { id, x, y, text } of wanted) {
    const length = [...text].length * LETTER;
    const sides: [Label, number][] = [
      [{ x: x + AWAY, y: y + 4, anchor: "start" }, x + AWAY],
      [{ x: x - AWAY, y: y + 4, anchor: "end" }, x - AWAY - length],
      [{ x, y: y + 22, anchor: "middle" }, x - length / 2],
      [{ x, y: y - 13, anchor: "middle" }, x - length / 2],
    ];
    for (const [label, left] of sides) {
      const box = { left, right: left + length, top: label.y - TALL + 3, bottom: label.y + 3 };
      if (!isFree(box)) continue;
      taken.push(box);
      placed.set(id, label);
      break;
    }
  }
  return placed;
}
