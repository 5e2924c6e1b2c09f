import { catalogue } from "../lib/words.js";

const say = catalogue({
  en: { neutral: "calm", concern: "worried", celebration: "glad", patience: "patient", curiosity: "curious", empathy: "feels with you", uncertain: "unsure" },
  de: { neutral: "ruhig", concern: "besorgt", celebration: "froh", patience: "geduldig", curiosity: "neugierig", empathy: "fühlt mit", uncertain: "unsicher" },
  ja: { neutral: "落ち着いている", concern: "心配している", celebration: "喜んでいる", patience: "待っている", curiosity: "興味がある", empathy: "寄り添っている", uncertain: "迷っている" },
  zh: { neutral: "平静", concern: "担心", celebration: "高兴", patience: "耐心", curiosity: "好奇", empathy: "感同身受", uncertain: "不确定" },
});

const feelings = ["neutral", "concern", "celebration", "patience", "curiosity", "empathy", "uncertain"] as const;

// moodWord says a feeling; one of another version of the server is said as it is.
export function moodWord(feeling: string): string {
  const known = feelings.find((f) => f === feeling);
  return known ? say(known) : feeling;
}
