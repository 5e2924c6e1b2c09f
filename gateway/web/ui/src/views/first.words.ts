import { catalogue } from "../lib/words.js";

export const say = catalogue({
  en: {
    title: "The first minutes", intro: "A few choices, and your Perch is ready. Everything can be changed later in the settings.", stepName: "1. Name and place", stepMind: "2. Speech and mind", stepHome: "3. Home Assistant", stepRobot: "4. A robot",
    name: "Name of this Perch", nameHint: "It answers in the network as {name}.local.", language: "Language", languageHint: "That people and robots speak.", timezone: "Time zone", machine: "As the machine",
    search: "Look in the network", searching: "Looking … this takes some seconds", found: "Found: {w} {w, one: speech server, other: speech servers}, {m} {m, one: model, other: models}.", nothing: "Nothing was found. The embedded parts work without anything else.",
    recognizer: "Who understands", synthesizer: "Who speaks", brain: "Who answers", keep: "As it is now ({now})", sphinx: "Embedded: fixed sentences in English", espeak: "Embedded: espeak-ng", reflex: "Embedded: time, timers, volume and more, in English",
    home: "How Home Assistant reaches Perch", homeKeep: "As it is now ({now})", homeEmbedded: "Perch is the broker: add the MQTT integration in Home Assistant with this machine's address", homeBroker: "Through a broker that is there already",
    broker: "Address of the broker", user: "User", password: "Password", passwordKept: "Set. Leave it empty to keep it.", save: "Save and restart", nothingNew: "Nothing was changed.", faults: "This is not accepted yet:", saved: "Saved. Perch is restarting …", back: "Perch is back with the new settings.",
    late: "Perch has not come back within two minutes. The log on the machine says why.", again: "Another owner has changed the settings meanwhile. What you chose is still here: save again.", readOnly: "These settings are managed elsewhere and cannot be changed here.",
    point: "Point a Stack-chan here", page: "Or a robot in this page", pageText: "It lives in the browser, talks and listens, and needs no hardware.", wake: "Wake it", toHome: "To the home view",
  },
  de: {
    title: "Die ersten Minuten", intro: "Einige Entscheidungen, und Ihr Perch ist bereit. Alles lässt sich später in den Einstellungen ändern.", stepName: "1. Name und Ort", stepMind: "2. Sprache und Verstand", stepHome: "3. Home Assistant", stepRobot: "4. Ein Roboter",
    name: "Name dieses Perch", nameHint: "Im Netz meldet er sich als {name}.local.", language: "Sprache", languageHint: "Die Menschen und Roboter sprechen.", timezone: "Zeitzone", machine: "Wie der Rechner",
    search: "Im Netz suchen", searching: "Es wird gesucht … das dauert einige Sekunden", found: "Gefunden: {w} {w, one: Sprachserver, other: Sprachserver}, {m} {m, one: Modell, other: Modelle}.", nothing: "Es wurde nichts gefunden. Die eingebauten Teile brauchen sonst nichts.",
    recognizer: "Wer versteht", synthesizer: "Wer spricht", brain: "Wer antwortet", keep: "Wie jetzt ({now})", sphinx: "Eingebaut: feste Sätze auf Englisch", espeak: "Eingebaut: espeak-ng", reflex: "Eingebaut: Uhrzeit, Wecker, Lautstärke und mehr, auf Englisch",
    home: "Wie Home Assistant Perch erreicht", homeKeep: "Wie jetzt ({now})", homeEmbedded: "Perch ist der Broker: Fügen Sie in Home Assistant die MQTT-Integration mit der Adresse dieses Rechners hinzu", homeBroker: "Über einen Broker, den es schon gibt",
    broker: "Adresse des Brokers", user: "Benutzer", password: "Passwort", passwordKept: "Ist gesetzt. Leer lassen, um es zu behalten.", save: "Speichern und neu starten", nothingNew: "Es wurde nichts geändert.", faults: "Das geht noch nicht:", saved: "Gespeichert. Perch startet neu …", back: "Perch ist mit den neuen Einstellungen zurück.",
    late: "Perch ist nach zwei Minuten nicht zurück. Das Protokoll auf dem Rechner sagt, warum.", again: "Ein anderer Besitzer hat inzwischen die Einstellungen geändert. Ihre Wahl ist noch da: Speichern Sie noch einmal.", readOnly: "Diese Einstellungen werden anderswo verwaltet und lassen sich hier nicht ändern.",
    point: "Einen Stack-chan hierher schicken", page: "Oder ein Roboter auf dieser Seite", pageText: "Er lebt im Browser, spricht und hört zu und braucht kein Gerät.", wake: "Aufwecken", toHome: "Zur Übersicht",
  },
  ja: {
    title: "最初の設定", intro: "いくつか選ぶだけで準備ができます。すべて後から設定で変えられます。", stepName: "1. 名前と場所", stepMind: "2. 音声と頭脳", stepHome: "3. Home Assistant", stepRobot: "4. ロボット",
    name: "この Perch の名前", nameHint: "ネットワークでは {name}.local で応答します。", language: "言語", languageHint: "人とロボットが話す言語です。", timezone: "タイムゾーン", machine: "機械に合わせる",
    search: "ネットワークを探す", searching: "探しています… 数秒かかります", found: "見つかりました: 音声サーバー {w} 台、モデル {m} 個。", nothing: "何も見つかりませんでした。内蔵の部品だけで動きます。",
    recognizer: "聞き取り", synthesizer: "発話", brain: "返事", keep: "いまのまま（{now}）", sphinx: "内蔵: 決まった英語の文", espeak: "内蔵: espeak-ng", reflex: "内蔵: 時刻、タイマー、音量など（英語）",
    home: "Home Assistant との接続方法", homeKeep: "いまのまま（{now}）", homeEmbedded: "Perch がブローカー: Home Assistant でこの機械のアドレスの MQTT 統合を追加します", homeBroker: "すでにあるブローカーを使う",
    broker: "ブローカーのアドレス", user: "ユーザー", password: "パスワード", passwordKept: "設定済みです。空なら変わりません。", save: "保存して再起動", nothingNew: "変更はありません。", faults: "まだ受け付けられません:", saved: "保存しました。再起動しています…", back: "新しい設定で戻りました。",
    late: "2 分たっても戻りません。理由は機械のログにあります。", again: "その間に別の持ち主が設定を変えました。選んだ内容は残っています。もう一度保存してください。", readOnly: "この設定は別の場所で管理されていて、ここでは変えられません。",
    point: "Stack-chan をここへ向ける", page: "またはこのページのロボット", pageText: "ブラウザの中で話し、聞きます。機器は要りません。", wake: "起こす", toHome: "ホームへ",
  },
  zh: {
    title: "最初几分钟", intro: "做几个选择，Perch 就准备好了。之后都可以在设置里修改。", stepName: "1. 名字和地点", stepMind: "2. 语音与大脑", stepHome: "3. Home Assistant", stepRobot: "4. 机器人",
    name: "这个 Perch 的名字", nameHint: "它在网络中以 {name}.local 应答。", language: "语言", languageHint: "人和机器人说的语言。", timezone: "时区", machine: "与机器相同",
    search: "在网络中查找", searching: "正在查找…需要几秒钟", found: "找到：{w} 个语音服务器，{m} 个模型。", nothing: "没有找到。内置部件不需要其他东西也能工作。",
    recognizer: "由谁来听", synthesizer: "由谁来说", brain: "由谁来回答", keep: "保持现状（{now}）", sphinx: "内置：固定的英语句子", espeak: "内置：espeak-ng", reflex: "内置：时间、定时器、音量等（英语）",
    home: "Home Assistant 如何连接 Perch", homeKeep: "保持现状（{now}）", homeEmbedded: "Perch 作为代理：在 Home Assistant 中用本机地址添加 MQTT 集成", homeBroker: "使用已有的代理",
    broker: "代理地址", user: "用户", password: "密码", passwordKept: "已设置。留空则保持不变。", save: "保存并重启", nothingNew: "没有更改。", faults: "暂时无法接受：", saved: "已保存。Perch 正在重启…", back: "Perch 已用新设置恢复。",
    late: "两分钟后 Perch 仍未恢复。机器上的日志会说明原因。", again: "另一位主人刚修改了设置。你的选择还在：请再保存一次。", readOnly: "这些设置由别处管理，无法在此更改。",
    point: "让 Stack-chan 连到这里", page: "或网页里的机器人", pageText: "它住在浏览器里，会听会说，不需要硬件。", wake: "唤醒它", toHome: "回到首页",
  },
});
