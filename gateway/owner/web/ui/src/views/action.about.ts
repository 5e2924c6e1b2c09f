// about returns the most important text in the payload of an action, or "".
export function about(p: Record<string, unknown>): string {
  const first = ["text", "name", "target", "trigger", "skill", "content", "message", "uri", "state"].map((k) => p[k]).find((v) => typeof v === "string" && v !== "");
  return typeof first === "string" ? first.slice(0, 200) : "";
}
