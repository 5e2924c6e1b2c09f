// The lines in which two texts differ.

export interface Difference {
  kind: "same" | "less" | "more";
  line: string;
}

const most = 4_000_000; // cells of the table

// differences leads from one text to another, without the lines that are the same.
export function differences(before: string, after: string): Difference[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let begin = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  let end = 0;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return middle(a.slice(begin, a.length - end), b.slice(begin, b.length - end)).filter((d) => d.kind !== "same");
}

// middle is by the longest common subsequence, or, where that is too much, all of both.
function middle(a: string[], b: string[]): Difference[] {
  const less = a.map((line): Difference => ({ kind: "less", line }));
  const more = b.map((line): Difference => ({ kind: "more", line }));
  if (a.length * b.length > most) return [...less, ...more];
  const wide = b.length + 1;
  const table = new Uint32Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * wide + j] = a[i] === b[j] ? table[(i + 1) * wide + j + 1]! + 1 : Math.max(table[(i + 1) * wide + j]!, table[i * wide + j + 1]!);
    }
  }
  const found: Difference[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      found.push({ kind: "same", line: a[i]! });
      i++;
      j++;
    } else if (table[(i + 1) * wide + j]! >= table[i * wide + j + 1]!) found.push(less[i++]!);
    else found.push(more[j++]!);
  }
  return [...found, ...less.slice(i), ...more.slice(j)];
}
