// The dashboard. The file of a view is loaded when the view is opened for the first time, and defines the element that
// is named here.

import { dress } from "./lib/theme.js";
import "./lib/ui.js";
import { allWords } from "./lib/words.js";
import "./views/shell.js";
import type { Route, Shell } from "./views/shell.js";

// whole waits for the texts of a view too, which the first view does not need.
const whole = async (view: Promise<unknown>): Promise<unknown> => Promise.all([view, allWords()]);

const routes: Record<string, Route> = {
  "": { element: "p-home", load: () => import("./views/home.js") },
  talk: { element: "p-talk-view", load: () => whole(import("./views/talk.js")) },
  robots: { element: "p-robot", load: () => whole(import("./views/robot.js")) },
  memory: { element: "p-memory", load: () => whole(import("./views/memory.js")) },
  notifications: { element: "p-notifications", load: () => whole(import("./views/notifications.js")) },
  timers: { element: "p-timers", load: () => whole(import("./views/timers.js")) },
  turns: { element: "p-turns", load: () => whole(import("./views/turns.js")) },
  sensed: { element: "p-sensed", load: () => whole(import("./views/sensed.js")) },
  firmware: { element: "p-firmware", load: () => whole(import("./views/firmware.js")) },
  engines: { element: "p-engines", load: () => whole(import("./views/engines.js")) },
  doctor: { element: "p-doctor", load: () => whole(import("./views/doctor.js")) },
  logs: { element: "p-logs", load: () => whole(import("./views/logs.js")) },
  backup: { element: "p-backup", load: () => whole(import("./views/backup.js")) },
  connections: { element: "p-connections", load: () => whole(import("./views/connections.js")) },
  microphone: { element: "p-microphone", load: () => whole(import("./views/microphone.js")) },
  settings: { element: "p-settings", load: () => whole(import("./views/settings.js")) },
  first: { element: "p-first", load: () => whole(import("./views/first.js")) },
};

dress();
const shell = document.createElement("p-shell") as Shell;
shell.routes = routes;
document.body.append(shell);
