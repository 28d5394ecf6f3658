// Light, dark, or as the system says.
const KEY = "omnizarr-theme";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

export function startTheme(): Theme {
  const theme = stored();
  apply(theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  return theme;
}

export function nextTheme(): Theme {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order: Theme[] = isDark ? ["system", "light", "dark"] : ["system", "dark", "light"];
  const theme = order[(order.indexOf(stored()) + 1) % order.length]!;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // kept for this page only
  }
  apply(theme);
  redraw();
  return theme;
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

/** Canvases take their colours when they are drawn. */
function redraw(): void {
  window.dispatchEvent(new Event("themechange"));
}
