import { catalogue } from "../lib/words.js";

export const say = catalogue({
  en: {
    title: "This is the Perch “{name}”", intro: "Perch gives Stack-chan robots a voice. This page is for its owner.",
    token: "Admin token", enter: "Come in", linkHow: "By a link: run this on the machine Perch runs on. It opens this page, or prints a link and a QR code.",
    tokenHow: "By the token: this prints it there.", linkOld: "That link did not let you in: {why}", opening: "Coming in …", how: "How to come in",
  },
  de: {
    title: "Das ist der Perch „{name}“", intro: "Perch gibt Stack-chan-Robotern eine Stimme. Diese Seite ist für ihren Besitzer.",
    token: "Admin-Token", enter: "Eintreten", linkHow: "Mit einem Link: Führen Sie das auf dem Rechner aus, auf dem Perch läuft. Es öffnet diese Seite oder zeigt einen Link und einen QR-Code.",
    tokenHow: "Mit dem Token: So wird er dort angezeigt.", linkOld: "Dieser Link hat Sie nicht eingelassen: {why}", opening: "Einen Moment …", how: "So kommen Sie hinein",
  },
  ja: {
    title: "Perch「{name}」", intro: "Perch は Stack-chan ロボットに声を与えます。このページは持ち主のためのものです。",
    token: "管理トークン", enter: "入る", linkHow: "リンクで入る: Perch が動いている機械で次を実行します。このページが開くか、リンクと QR コードが表示されます。",
    tokenHow: "トークンで入る: 次のコマンドで表示されます。", linkOld: "このリンクでは入れませんでした: {why}", opening: "入っています…", how: "入り方",
  },
  zh: {
    title: "这是 Perch“{name}”", intro: "Perch 为 Stack-chan 机器人提供语音。此页面仅供主人使用。",
    token: "管理令牌", enter: "进入", linkHow: "用链接：在运行 Perch 的机器上执行以下命令。它会打开此页面，或显示链接和二维码。",
    tokenHow: "用令牌：以下命令会显示它。", linkOld: "该链接无法进入：{why}", opening: "正在进入…", how: "如何进入",
  },
});
