// What a face says of itself to those who do not see it. The catalogue is apart
// from the page's own: the element has no dependencies, and takes its language
// from the nearest lang attribute.

import type { Emotion, State } from "./faces.js";

interface Words {
  states: Record<State, string>;
  emotions: Record<Emotion, string>;
  muted: string;
  both: (state: string, emotion: string) => string;
  says: (label: string, text: string) => string;
}

const en: Words = {
  states: {
    idle: "Waiting", listening: "Listening", thinking: "Thinking", working: "Using a tool", juggling: "Doing several things",
    speaking: "Speaking", sleeping: "Asleep", error: "Something went wrong", attention: "Finished", notification: "Has a question",
  },
  emotions: {
    neutral: "calm", happy: "happy", laughing: "laughing", funny: "in tears of laughter", sad: "sad", angry: "angry", crying: "crying",
    loving: "in love", embarrassed: "embarrassed", surprised: "surprised", shocked: "shocked", thinking: "thoughtful", winking: "winking",
    cool: "cool", relaxed: "relaxed", delicious: "enjoying the taste", kissy: "sending a kiss", confident: "confident", sleepy: "sleepy",
    silly: "silly", confused: "confused", doubtful: "doubtful",
  },
  muted: "The microphone is off",
  both: (s, e) => `${s}, ${e}`,
  says: (l, t) => `${l}: “${t}”`,
};

const de: Words = {
  states: {
    idle: "Wartet", listening: "Hört zu", thinking: "Denkt nach", working: "Benutzt ein Werkzeug", juggling: "Tut mehreres zugleich",
    speaking: "Spricht", sleeping: "Schläft", error: "Etwas ist schiefgegangen", attention: "Ist fertig", notification: "Hat eine Frage",
  },
  emotions: {
    neutral: "ruhig", happy: "fröhlich", laughing: "lachend", funny: "unter Lachtränen", sad: "traurig", angry: "zornig", crying: "weinend",
    loving: "verliebt", embarrassed: "verlegen", surprised: "überrascht", shocked: "erschrocken", thinking: "nachdenklich",
    winking: "zwinkernd", cool: "lässig", relaxed: "entspannt", delicious: "genießend", kissy: "mit einem Kuss", confident: "selbstbewusst",
    sleepy: "müde", silly: "albern", confused: "verwirrt", doubtful: "zweifelnd",
  },
  muted: "Das Mikrofon ist aus",
  both: (s, e) => `${s}, ${e}`,
  says: (l, t) => `${l}: „${t}“`,
};

const ja: Words = {
  states: {
    idle: "待機中", listening: "聞いています", thinking: "考えています", working: "ツールを使っています", juggling: "いくつかの作業をしています",
    speaking: "話しています", sleeping: "眠っています", error: "問題が起きました", attention: "終わりました", notification: "質問があります",
  },
  emotions: {
    neutral: "落ち着いた顔", happy: "うれしい顔", laughing: "笑った顔", funny: "笑い泣きの顔", sad: "悲しい顔", angry: "怒った顔", crying: "泣いた顔",
    loving: "大好きの顔", embarrassed: "照れた顔", surprised: "驚いた顔", shocked: "ショックの顔", thinking: "考える顔", winking: "ウインク",
    cool: "クールな顔", relaxed: "くつろいだ顔", delicious: "おいしい顔", kissy: "投げキス", confident: "自信のある顔", sleepy: "眠い顔",
    silly: "おどけた顔", confused: "困った顔", doubtful: "疑う顔",
  },
  muted: "マイクはオフです",
  both: (s, e) => `${s}、${e}`,
  says: (l, t) => `${l}：「${t}」`,
};

const zh: Words = {
  states: {
    idle: "待机", listening: "正在听", thinking: "正在思考", working: "正在使用工具", juggling: "正在同时做几件事", speaking: "正在说话",
    sleeping: "睡着了", error: "出错了", attention: "已完成", notification: "有一个问题",
  },
  emotions: {
    neutral: "平静", happy: "开心", laughing: "大笑", funny: "笑出眼泪", sad: "难过", angry: "生气", crying: "哭泣", loving: "喜爱",
    embarrassed: "害羞", surprised: "惊讶", shocked: "震惊", thinking: "沉思", winking: "眨眼", cool: "酷", relaxed: "放松", delicious: "美味",
    kissy: "飞吻", confident: "自信", sleepy: "困倦", silly: "调皮", confused: "困惑", doubtful: "怀疑",
  },
  muted: "麦克风已关闭",
  both: (s, e) => `${s}，${e}`,
  says: (l, t) => `${l}：“${t}”`,
};

const all: Record<string, Words> = { en, de, ja, zh };

export interface Described {
  state: State;
  emotion: Emotion;
  muted: boolean;
  text: string;
}

const wordsOf = (language: string): Words => all[language.slice(0, 2).toLowerCase()] ?? en;

// stateIn is a state in words.
export function stateIn(s: State, language: string): string {
  return wordsOf(language).states[s];
}

// describe says a face in words.
export function describe(d: Described, language: string): string {
  const w = wordsOf(language);
  let label = w.both(w.states[d.state], w.emotions[d.emotion]);
  if (d.muted) label = w.both(label, w.muted);
  return d.text ? w.says(label, d.text) : label;
}
