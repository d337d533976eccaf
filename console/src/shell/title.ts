import { useEffect } from "react";

/** Have the browser call the page by what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
}
