"""Speech and conversation in both directions: Perch's engines in Home Assistant, and Home Assistant's in Perch."""

import array
import io
import json
import re
import subprocess
import tempfile
import time
import wave

from client import Timeout, until
from programs import Robot, address, free_port, root

# What the agent conversation.storyteller writes, by language.
STORIES = json.loads((root / "packaging/peers/storyteller/stories.json").read_text())


def speak(text):
    """Returns a text as speech of flite's: 16-bit PCM, 16 kHz, mono."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", file.name], check=True)
        with wave.open(file.name) as w:
            assert (w.getframerate(), w.getnchannels(), w.getsampwidth()) == (16000, 1, 2)
            return w.readframes(w.getnframes())


def length(sound):
    """Returns the seconds of a WAV file's sound, and how loud it is."""
    with wave.open(io.BytesIO(sound)) as w:
        samples = array.array("h", w.readframes(w.getnframes()))
        return len(samples) / w.getframerate() / w.getnchannels(), max(map(abs, samples), default=0)


async def add_wyoming(run):
    """Adds the integration Wyoming Protocol with the address of Perch's server."""
    entry = await run.ha.add("wyoming", host="127.0.0.1", port=run.programs.ports["wyoming"])
    entities = await until("Wyoming's entities", lambda: run.ha.entities("wyoming"))
    print(f"  {entry['title']}: {', '.join(sorted(e['entity_id'] for e in entities))}")
    engines = {"speech to text": await run.ha.ask("stt/engine/list"), "text to speech": await run.ha.ask("tts/engine/list")}
    for name, found in engines.items():
        print(f"  {name}: " + ", ".join(f"{p['engine_id']} ({' '.join(p['supported_languages'])})" for p in found["providers"]))
    return {e["entity_id"].partition(".")[0]: e["entity_id"] for e in entities}


async def add_pipeline(run, name, language, agent, stt, tts):
    """Adds an Assist pipeline, and returns its ID."""
    pipeline = await run.ha.ask(
        "assist_pipeline/pipeline/create", name=name, language=language, conversation_engine=agent, conversation_language=language, stt_engine=stt,
        stt_language=language if stt else None, tts_engine=tts, tts_language=language, tts_voice=None, wake_word_entity=None, wake_word_id=None)
    return pipeline["id"]


async def run_pipeline(run, pipeline, sound):
    """Sends speech through a pipeline as a satellite does, prints what came of it, and returns the events by type."""
    events, times, began = {}, {}, time.monotonic()

    def record(event):
        events[event["type"]] = event["data"]
        times.setdefault(event["type"], time.monotonic())

    await run.ha.subscribe(record, "assist_pipeline/run", start_stage="stt", end_stage="tts", input={"sample_rate": 16000}, pipeline=pipeline, timeout=60)
    start = await until("run-start", lambda: events.get("run-start"))
    handler = bytes([start["runner_data"]["stt_binary_handler_id"]])
    for i in range(0, len(sound), 3200):
        await run.ha.socket.send_bytes(handler + sound[i:i + 3200])
    await run.ha.socket.send_bytes(handler)
    spoken = time.monotonic()
    await until("the end of the pipeline", lambda: "run-end" in events or "error" in events)
    if "error" in events:
        raise Timeout(f"the pipeline ended with {events['error']}")
    text = events["stt-end"]["stt_output"]["text"]
    answer = events["intent-end"]["intent_output"]["response"]["speech"]["plain"]["speech"]
    output = events["tts-end"]["tts_output"]
    async with run.ha.session.get(run.ha.url + output["url"]) as response:
        data = await response.read()
    after = {name: f"{1000 * (at - spoken):.0f} ms" for name, at in times.items() if at >= spoken}
    print(f"  heard {text!r}, answered {answer!r}, spoken as {output['mime_type']} of {len(data)} bytes; after the last sound: {after}")
    return text, answer, data


async def use_perch(run, engines):
    """Runs a pipeline of Perch's recognizer, agent and synthesizer with spoken questions."""
    pipeline = await add_pipeline(run, "Perch", "en", engines["conversation"], engines["stt"], engines["tts"])
    text, answer, sound = await run_pipeline(run, pipeline, speak("what time is it"))
    run.check(text == "what time is it" and answer.startswith("It is"), f"heard {text!r}, answered {answer!r}")
    if sound[:4] == b"RIFF":
        seconds, loudest = length(sound)
        run.check(0.5 < seconds < 20 and loudest > 1000, f"the answer has {seconds:.1f} s of sound, its loudest sample is {loudest}")
    _, answer, _ = await run_pipeline(run, pipeline, speak("remember that my keys are in the kitchen"))
    _, answer, _ = await run_pipeline(run, pipeline, speak("where are my keys"))
    run.check("kitchen" in answer, f"the agent does not remember: {answer!r}")
    answer = await converse(run, engines["conversation"], "wie spät ist es", "de")
    run.check("Uhr" in answer, f"in German the agent says {answer!r}")


async def converse(run, agent, text, language):
    """Types a text to a conversation agent, as Home Assistant's dialog does, and returns the answer."""
    result = await run.ha.call("POST", "/api/conversation/process", text=text, language=language, agent_id=agent)
    answer = result["response"]["speech"]["plain"]["speech"]
    print(f"  {agent}, {language}: {text!r} is answered {answer!r}")
    return answer


class Second:
    """Another Perch, whose engines are Home Assistant's."""

    def __init__(self, run, name, engines):
        self.run, self.name = run, name
        self.port, self.local = free_port(), free_port()
        data = run.programs.folder / name
        config = run.programs.folder / f"{name}.yaml"
        config.write_text(json.dumps({
            "listen": [f"127.0.0.1:{self.port}"], "local": [f"127.0.0.1:{self.local}"], "mqtt": {"broker": "none"}, "mdns": {"enabled": False},
            "robots": {"mqtt": {"listen": f"127.0.0.1:{free_port()}"}, "udp": f"127.0.0.1:{free_port()}"}, **engines}))
        run.programs.start(name, root / "bin/perch", "serve", "--config", config, "--data", data)
        self.token = data / "admin-token"

    async def try_engine(self, part, body, kind="application/json"):
        """Uses an engine once, and returns the answer's status and body."""
        headers = {"Authorization": f"Bearer {self.token.read_text().strip()}", "Content-Type": kind}
        url = f"http://127.0.0.1:{self.port}/api/v1/engines/try"
        async with self.run.ha.session.post(url, params={"part": part}, data=body, headers=headers) as response:
            return response.status, await response.read()

    async def try_text(self, part, text):
        """Uses a brain once, prints and returns the answer."""
        status, body = await self.try_engine(part, json.dumps({"text": text}))
        answer = json.loads(body)
        print(f"  {part}: {text!r}: {status} {answer.get('text', answer)}")
        return answer.get("text") or answer["error"]["message"]

    def robot(self, *arguments):
        """Starts a simulated robot of this Perch."""
        programs, name = self.run.programs, f"{self.name}-robot"
        process = programs.start(name, root / "bin/perch-tools", "robot", "--ota", f"http://127.0.0.1:{self.port}/xiaozhi/ota/",
                                 "--mac", address("a0b1c2d3e4fa"), "--transcript", programs.folder / f"{name}.jsonl", *arguments)
        return Robot(programs, name, process)


def recording(pcm):
    """Returns speech as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as w:
        w.setparams((1, 2, 16000, 0, "NONE", ""))
        w.writeframes(pcm + bytes(16000))
    return file.getvalue()


async def use_home_assistant(run, engines):
    """Uses Home Assistant's conversation and pipelines, in two languages, as the engines of another Perch."""
    token = await run.ha.ask("auth/long_lived_access_token", client_name="Perch", lifespan=365)
    own = "conversation.home_assistant"
    english = await add_pipeline(run, "English", "en", own, engines["stt"], engines["tts"])
    german = await add_pipeline(run, "Deutsch", "de", own, None, engines["tts"])
    to = {"kind": "assist", "url": run.ha.url, "token": token, "within": "1m"}
    second = Second(run, "second", {
        "speech": {"recognizers": [{**to, "pipeline": english}], "synthesizers": [{**to, "pipeline": english}, {**to, "pipeline": german}]},
        "brains": [{**to, "pipeline": english}, {**to, "pipeline": german}, {**to, "agent": own, "rest": True},
                   {**to, "agent": "conversation.nobody"}, {**to, "token": "wrong"}]})
    await until("the second Perch", second.token.exists)
    await until("its engines", lambda: answers(run, second))
    robot = second.robot("--say", "what time is it", "--say", "turn on the desk")
    await run.ha.act("light.turn_off", "light.desk")
    await until("the talk", robot.has_ended)
    run.check(robot.process.returncode == 0, run.programs.log(robot.name))
    heard = [m["text"] for m in robot.messages("server") if m["type"] == "stt"]
    print(f"  a robot's talk: heard {heard}, said {robot.spoken()!r}; the desk's light is {run.ha.state('light.desk')}")
    for line in run.programs.log(robot.name).splitlines():
        if "first audio" in line or "ms" in line:
            print("   ", line)
    run.check(heard[:1] == ["what time is it"] and re.search(r"\d", robot.spoken()), "Home Assistant did not tell the time")
    run.check(run.ha.state("light.desk") == "on", "Home Assistant did not turn on the light")

    for part in ("brain assist", "brain assist 3"):
        run.check("Turned off" in await second.try_text(part, "turn off the desk"), f"{part} did not turn off the light")
    run.check("Uhr" in (said := await second.try_text("brain assist 2", "wie spät ist es")) or re.search(r"\d", said), f"in German it is {said!r}")
    run.check((await second.try_text("brain assist", "turn on the moon")).startswith("Sorry"), "an error is not told")
    await second.try_text("brain assist 4", "what time is it")
    await second.try_text("brain assist 5", "what time is it")
    status, body = await second.try_engine("recognizer assist", recording(speak("look left")), "audio/wav")
    print(f"  recognizer assist: {status} {body.decode()}")
    run.check(status == 200 and json.loads(body)["text"] == "look left", "Home Assistant's pipeline did not recognize")
    for part, text in (("synthesizer assist", "Good morning."), ("synthesizer assist 2", "Guten Morgen.")):
        status, body = await second.try_engine(part, json.dumps({"text": text}))
        seconds, loudest = length(body) if status == 200 else (0, 0)
        print(f"  {part}: {status}, {seconds:.1f} s of sound")
        run.check(0.3 < seconds < 5 and loudest > 1000, f"{part}: {status} {body[:200]!r}, the loudest sample is {loudest}")
    run.programs.stop("second")


async def stream(run, engines):
    """Has a robot hear the first sentence of an answer before Home Assistant's agent writes the second one, in two languages."""
    token = await run.ha.ask("auth/long_lived_access_token", client_name="Story", lifespan=365)
    for language, (first, second) in STORIES.items():
        pipeline = await add_pipeline(run, f"Story {language}", language, "conversation.storyteller", None, engines["tts"])
        engine = {"kind": "assist", "url": run.ha.url, "token": token, "pipeline": pipeline, "within": "1m"}
        wyoming = {"kind": "wyoming", "url": f"tcp://127.0.0.1:{run.programs.ports['wyoming']}", "within": "1m"}  # hears English
        perch = Second(run, f"story-{language}", {"speech": {"recognizers": [wyoming], "synthesizers": [engine]}, "brains": [engine]})
        await until("its engines", lambda perch=perch: answers(run, perch))
        await run.ha.act("input_boolean.turn_off", "input_boolean.heard")
        robot = perch.robot("--say", "who are you")
        await until("the first sentence", lambda robot=robot, first=first: first in robot.spoken())
        heard = time.monotonic()
        run.check(second not in robot.spoken(), "the second sentence came with the first one")
        await run.ha.act("input_boolean.turn_on", "input_boolean.heard")
        await until("the second sentence", lambda robot=robot, second=second: second in robot.spoken())
        print(f"  {language}: {first!r} was spoken before the agent wrote on; {second!r} {1000 * (time.monotonic() - heard):.0f} ms later")
        await until("the talk", robot.has_ended)
        run.check(robot.process.returncode == 0, run.programs.log(robot.name))
        run.programs.stop(perch.name)


async def answers(run, second):
    async with run.ha.session.get(f"http://127.0.0.1:{second.local}/health") as response:
        return response.status == 200
