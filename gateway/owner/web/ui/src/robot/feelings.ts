// The mood of the robot in the page, from the skins' WebSocket, because a robot's channel carries only the faces of the
// firmware. If the page is not allowed to connect to that WebSocket, the face shows no mood.

import { moodOf, type StackChanFace } from "../face/face.js";
import { socketURL } from "../lib/api.js";
import { fieldsOf } from "./wire.js";

const againAfter = 5000;

export class Feelings {
  private socket: WebSocket | undefined;
  private timer = 0;

  constructor(private readonly face: () => StackChanFace | null) {}

  // follow shows the mood of a robot on the face until stop is called. It connects again after the end of a connection,
  // but not if the first connection was refused.
  follow(robot: string): void {
    this.stop();
    const socket = new WebSocket(socketURL("v1/vtuber/ws"));
    let inside = false;
    this.socket = socket;
    socket.onopen = () => {
      inside = true;
      socket.send(JSON.stringify({ type: "subscribe", events: ["mood"], session_ids: [`robot:${robot}`] }));
    };
    socket.onmessage = (e: MessageEvent<unknown>) => {
      if (typeof e.data === "string") this.take(e.data);
    };
    socket.onclose = () => {
      if (inside && this.socket === socket) this.timer = window.setTimeout(() => this.follow(robot), againAfter);
    };
  }

  stop(): void {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  private take(text: string): void {
    let frame: Record<string, unknown>;
    try {
      frame = fieldsOf(JSON.parse(text));
    } catch {
      return;
    }
    const face = this.face();
    if (!face) return;
    if (frame["type"] !== "mood") return;
    const mood = moodOf(frame);
    face.feels = mood && { ...mood, yaw: 0, lean: 0 }; // the robot's head tools move yaw and pitch
  }
}
