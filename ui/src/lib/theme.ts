// Light, dark, or as the system says.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const KEY = "bethink-theme";

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto"; // storage may be switched off
  }
}

export const theme = signal<Theme>(kept());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    localStorage.setItem(KEY, theme.value);
  } catch {
    // The choice then lasts as long as the page.
  }
});

export function nextTheme(): void {
  theme.value = theme.value === "auto" ? "light" : theme.value === "light" ? "dark" : "auto";
}
