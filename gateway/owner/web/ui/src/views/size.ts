import { locale } from "../lib/words.js";

// size formats a number of bytes with a unit.
export function size(bytes: number): string {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;
  let n = Math.max(0, bytes);
  let unit = 0;
  while (n >= 1000 && unit < units.length - 1) {
    n /= 1000;
    unit++;
  }
  const digits = unit === 0 || n >= 100 ? 0 : 1;
  return new Intl.NumberFormat(locale(), { style: "unit", unit: units[unit]!, maximumFractionDigits: digits }).format(n);
}
