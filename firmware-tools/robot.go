package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/voice"
)

type robotFlags struct {
	options simrobot.Options
	say     []string
	mic     string
	speaker string
	script  string
	robots  int
	picture bool
	json    bool
	network simrobot.Network

	spoken [][]simrobot.Sentence // for the microphone of each robot
}

func robotCommand(name string, f *robotFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: "Simulate a robot, which behaves as the firmware does",
		Example: `perch-tools robot --say "what time is it"
			perch-tools robot --ota http://perch.local:8003/xiaozhi/ota/ --robots 10 --say "remember that my number is %d"`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.robot(c.Context(), lines{c.OutOrStdout(), f.json})
		},
	}
	o, s := &f.options, c.Flags()
	s.StringVar(&o.OTA, "ota", "", "`URL` of the appliance's bootstrap; without it the appliance is found by browsing")
	s.StringVar(&o.MAC, "mac", "02:70:65:72:63:68", "the robot's `MAC` address")
	s.StringArrayVar(&f.say, "say", nil, "`TEXT` to say to the robot, where %d stands for the robot's number, from 1; repeat it for more turns")
	s.StringVar(&f.mic, "mic", "", "WAV `FILE` that the microphone hears, one turn")
	s.StringVar(&f.speaker, "speaker", "", "WAV `FILE` to write what the speaker plays to")
	s.StringVar((*string)(&o.Mode), "mode", "", "`auto|manual|realtime`; without it auto, or realtime where --aec is not off")
	s.StringVar((*string)(&o.AEC), "aec", "", "`off|device|server`: who cancels the echo; without it device in realtime mode, else off")
	s.StringVar(&o.Wake, "wake", "", "`TEXT` that wakes the robot, in place of a tap")
	s.IntVar((*int)(&o.Framing), "framing", 0, "binary framing `1|2|3`, in place of the bootstrap's")
	s.Func("event", "`NAME=JSON` to send when the channel opens; repeatable", func(text string) error { return addEvent(o, text) })
	s.BoolVar(&o.Upgrades, "upgrade", false, "install the firmware that is offered, and boot it")
	s.BoolVar(&o.Crashes, "crash", false, "what --upgrade installs crashes before its check-in")
	s.StringVar((*string)(&o.Transport), "transport", "", "`websocket|mqtt`: the transport that the bootstrap must tell it to use; without it either")
	s.BoolVar(&o.Asleep, "asleep", false, "open no channel: be there for what comes by MQTT, until it is stopped")
	s.Float64Var(&f.network.Loss, "loss", 0, "`PART` of the datagrams of talks over MQTT that is lost, such as 0.05")
	s.Float64Var(&f.network.Reorder, "reorder", 0, "`PART` of them that comes 75 ms late")
	s.DurationVar(&f.network.Jitter, "jitter", 0, "longest `TIME` by which the others are late")
	s.DurationVar(&f.network.Rebind, "rebind", 0, "`TIME` after which the robot sends from another port")
	s.BoolVar(&o.Stay, "stay", false, "do not hang up after the last answer")
	s.StringVar(&o.Firmware, "firmware", "2.2.4", "`"+strings.Join(simrobot.Firmwares(), "|")+"`: the firmware that it behaves as")
	s.StringVar(&f.script, "transcript", "", "`FILE` to write every frame to, as JSON lines, secrets blanked")
	s.StringVar(&o.FlashFile, "flash", "", "JSON `FILE` that keeps the content of the robot's flash; without it nothing is kept")
	s.BoolVar(&f.picture, "picture", false, "show faces and colours on a terminal, and play the talk on this machine's sound device")
	s.IntVar(&f.robots, "robots", 1, "`N` robots; their MACs count up from --mac")
	s.BoolVar(&f.json, "json", false, "print JSON, an object a line")
	return c
}

// robot simulates one robot, or many.
func (f *robotFlags) robot(ctx context.Context, out lines) (err error) {
	if f.options.OTA == "" {
		if f.options.OTA, err = browse(ctx, out, otaURL); err != nil {
			return err
		}
	}
	if err := f.speak(ctx); err != nil {
		return err
	}
	if f.robots > 1 {
		return runMany(ctx, f, out)
	}
	return runOne(ctx, f, out)
}

// check returns an error for options that contradict each other. simrobot.New checks
// the rest.
func (f *robotFlags) check() error {
	switch {
	case len(f.say) > 0 && f.mic != "":
		return command.Usagef("--say and --mic are two sources for one microphone")
	case f.robots < 1 || f.robots > 1000:
		return command.Usagef("--robots %d: 1 to 1000", f.robots)
	case f.robots > 1 && (f.speaker != "" || f.script != "" || f.options.FlashFile != "" || f.picture):
		return command.Usagef("--speaker, --transcript, --flash and --picture are for one robot")
	case f.network.Loss < 0 || f.network.Loss > 1 || f.network.Reorder < 0 || f.network.Reorder > 1 || f.network.Jitter < 0 || f.network.Rebind < 0:
		return command.Usagef("--loss and --reorder are 0 to 1, --jitter and --rebind times")
	case f.options.Asleep && (len(f.say) > 0 || f.mic != ""):
		return command.Usagef("a robot that is --asleep says nothing")
	case f.json && f.picture:
		return command.Usagef("--picture is for people, and --json for programs")
	}
	if o := &f.options; o.AEC == "" && o.Mode == xiaozhi.Realtime {
		o.AEC = simrobot.AECDevice // robots have that mode only with echo cancellation
	}
	if f.network != (simrobot.Network{}) {
		f.options.Network = &f.network
	}
	f.options.Record = f.speaker != ""
	o := f.options
	o.FlashFile = ""
	if _, err := simrobot.New(o); err != nil {
		return command.Usagef("%w", err)
	}
	return nil
}

func addEvent(o *simrobot.Options, text string) error {
	name, data, found := strings.Cut(text, "=")
	if !found {
		data = "{}"
	}
	var object map[string]json.RawMessage
	letters := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if name == "" || !letters || json.Unmarshal([]byte(data), &object) != nil || object == nil {
		return errors.New("an event is NAME=JSON, where NAME is of a-z, 0-9 and _, and JSON is an object")
	}
	o.Events = append(o.Events, xiaozhi.Event{Name: name, Data: json.RawMessage(data)})
	return nil
}

// speak synthesizes the sound for all microphones, each text once.
func (f *robotFlags) speak(ctx context.Context) (err error) {
	o := &f.options
	if o.Wake != "" {
		if o.WakePCM, err = simrobot.Speak(ctx, o.Wake, ""); err != nil {
			return err
		}
	}
	var recorded []simrobot.Sentence
	if f.mic != "" {
		pcm, err := simrobot.ReadWAV(f.mic)
		if err != nil {
			return err
		}
		recorded = append(recorded, simrobot.Sentence{Text: filepath.Base(f.mic), PCM: pcm})
	}
	sound := map[string][]int16{}
	for n := range f.robots {
		sentences := slices.Clone(recorded)
		for _, text := range f.say {
			text = strings.ReplaceAll(text, "%d", strconv.Itoa(n+1))
			if sound[text] == nil {
				if sound[text], err = simrobot.Speak(ctx, text, ""); err != nil {
					return err
				}
			}
			sentences = append(sentences, simrobot.Sentence{Text: text, PCM: sound[text]})
		}
		f.spoken = append(f.spoken, sentences)
	}
	o.Say = f.spoken[0]
	return nil
}

// runOne runs a single robot and prints what happens.
func runOne(ctx context.Context, f *robotFlags, out lines) (err error) {
	o := f.options
	log := &liveLog{out: out, mac: o.MAC, upgrades: o.Upgrades}
	o.Observe = log.observe
	if f.picture {
		defer f.startDisplay(ctx, log, &o)()
	}
	if f.script != "" {
		file, err := os.Create(f.script)
		if err != nil {
			return fmt.Errorf("open the transcript: %w", err)
		}
		defer file.Close()
		o.Transcript = file
	}
	r, err := simrobot.New(o)
	if err != nil {
		return err
	}
	if err = r.Boot(ctx); err == nil && (len(o.Say) > 0 || len(o.Events) > 0 || o.Wake != "" || o.Stay || o.Asleep) {
		err = r.Talk(ctx)
	}
	err = stayed(ctx, o, r, err)
	if !f.picture {
		report(out, r.Stats())
	}
	if f.speaker != "" {
		err = errors.Join(err, writeSound(f.speaker, r))
	}
	return err
}

// startDisplay shows the log as a picture and plays both voices of the talk. It
// returns a function that waits until all was played.
func (f *robotFlags) startDisplay(ctx context.Context, log *liveLog, o *simrobot.Options) (end func()) {
	log.picture = &picture{screen: command.ScreenOf(log.out.to, os.Getenv)}
	player := playerOf(os.Getenv, exists)
	how := "not played: no sound device, or neither aplay nor pacat"
	if len(player) > 0 {
		how = "played by " + player[0]
	}
	log.line("robot", "sound", how)
	heard := newLoudspeaker(ctx, player)
	o.Play = heard.play
	o.Observe = func(h simrobot.Observation) {
		log.observe(h)
		said, ok := h.(simrobot.Spoken)
		for _, s := range o.Say {
			if ok && s.Text == said.Text {
				heard.play(voice.MicRate, s.PCM)
				break
			}
		}
	}
	return heard.close
}

func writeSound(path string, r *simrobot.Robot) error {
	rate, pcm := r.Sound()
	if rate == 0 {
		rate = voice.SpeakerRate // the robot played nothing
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write what the speaker played: %w", err)
	}
	return errors.Join(voice.WriteWAV(file, rate, pcm), file.Close())
}
