import { catalogue } from "../lib/words.js";

export const say = catalogue({
  en: {
    diary: "Diary", lead: "What the characters did, as it was written down. Each entry is bound to the one before, so that a change is found.",
    none: "Nothing is written yet.", whole: "Nothing was changed: {n} {n, one: entry, other: entries}, the newest is number {to}.", wholeEmpty: "Nothing was changed: there are no entries.",
    broken: "The diary was changed or is damaged.", further: "… and {n} more", check: "Check", checked: "Hash of the newest: {hash}", number: "No. {n}",
  },
  de: {
    diary: "Tagebuch", lead: "Was die Wesen getan haben, wie es aufgeschrieben wurde. Jeder Eintrag ist an den davor gebunden, damit eine Änderung auffällt.",
    none: "Noch nichts aufgeschrieben.", whole: "Nichts wurde geändert: {n} {n, one: Eintrag, other: Einträge}, der neueste ist Nummer {to}.", wholeEmpty: "Nichts wurde geändert: Es gibt keine Einträge.",
    broken: "Das Tagebuch wurde geändert oder ist beschädigt.", further: "… und {n} weitere", check: "Prüfen", checked: "Hash des neuesten: {hash}", number: "Nr. {n}",
  },
  ja: {
    diary: "日記", lead: "キャラクターがしたことの記録です。各項目は前の項目と結び付いているので、書き換えると見つかります。",
    none: "まだ何も書かれていません。", whole: "変更はありません。全{n}件、最新は{to}番です。", wholeEmpty: "変更はありません。項目はまだありません。",
    broken: "日記が変更されたか、壊れています。", further: "ほか{n}件", check: "確認", checked: "最新のハッシュ：{hash}", number: "{n}番",
  },
  zh: {
    diary: "日记", lead: "角色所做之事的记录。每一条都与前一条相连，所以改动会被发现。",
    none: "还没有记录。", whole: "没有改动：共 {n} 条，最新的是第 {to} 条。", wholeEmpty: "没有改动：还没有记录。",
    broken: "日记被改动过或已损坏。", further: "……另有 {n} 处", check: "检查", checked: "最新一条的哈希：{hash}", number: "第 {n} 条",
  },
});
