import { catalogue } from "../lib/words.js";

const say = catalogue("mood");

const feelings = ["neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"] as const;

// moodWord says a feeling; one of another version of the server is said as it is.
export function moodWord(feeling: string): string {
  const known = feelings.find((f) => f === feeling);
  return known ? say(known) : feeling;
}
