// What an action holds, in a few words.

// about is what an action says first.
export function about(p: Record<string, unknown>): string {
  const first = ["text", "name", "target", "trigger", "skill", "content", "message", "uri", "state"].map((k) => p[k]).find((v) => typeof v === "string" && v !== "");
  return typeof first === "string" ? first.slice(0, 200) : "";
}
