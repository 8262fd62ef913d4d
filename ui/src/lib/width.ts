// The width of an element, so that a drawing has as many units as pixels.
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(element: { current: Element | null }): number {
  const [width, setWidth] = useState(1000);
  useLayoutEffect(() => {
    const watched = element.current;
    if (!watched) return;
    const measure = () => setWidth(Math.max(280, Math.round(watched.getBoundingClientRect().width)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(watched);
    return () => observer.disconnect();
  }, []);
  return width;
}
