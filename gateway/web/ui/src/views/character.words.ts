import { catalogue } from "../lib/words.js";

export const say = catalogue({
  en: {
    gestures: "Gestures", wave: "Wave", nod: "Nod", shake: "Shake the head", think: "Think", celebrate: "Celebrate", concern: "Worry", bow: "Bow", point: "Point",
    shrug: "Shrug", fidget: "Fidget", dance: "Dance", idle: "Look about", actions: "What its character does", none: "Nothing yet.",
  },
  de: {
    gestures: "Gesten", wave: "Winken", nod: "Nicken", shake: "Kopf schütteln", think: "Nachdenken", celebrate: "Jubeln", concern: "Sich sorgen", bow: "Verbeugen", point: "Zeigen",
    shrug: "Achselzucken", fidget: "Zappeln", dance: "Tanzen", idle: "Umschauen", actions: "Was sein Wesen tut", none: "Noch nichts.",
  },
  ja: {
    gestures: "しぐさ", wave: "手を振る", nod: "うなずく", shake: "首を振る", think: "考える", celebrate: "喜ぶ", concern: "心配する", bow: "おじぎ", point: "指す",
    shrug: "肩をすくめる", fidget: "そわそわする", dance: "踊る", idle: "見回す", actions: "キャラクターの行動", none: "まだありません。",
  },
  zh: {
    gestures: "动作", wave: "挥手", nod: "点头", shake: "摇头", think: "思考", celebrate: "庆祝", concern: "担忧", bow: "鞠躬", point: "指向",
    shrug: "耸肩", fidget: "坐立不安", dance: "跳舞", idle: "四处看看", actions: "角色的行为", none: "还没有。",
  },
});

export const gestureNames = ["wave", "nod", "shake", "think", "celebrate", "concern", "bow", "point", "shrug", "fidget", "dance", "idle"] as const;
