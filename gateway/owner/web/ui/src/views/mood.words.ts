import { catalogue } from "../lib/words.js";

const say = catalogue("mood");

const feelings = ["neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"] as const;

// moodWord returns the translated name of a feeling, or an unknown name unchanged.
export function moodWord(feeling: string): string {
  const known = feelings.find((f) => f === feeling);
  return known ? say(known) : feeling;
}
