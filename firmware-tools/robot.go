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

// robotFlags are the options of the command robot.
type robotFlags struct {
	options simrobot.Options
	say     []string
	mic     string // WAV file to play to the microphone
	speaker string // WAV file to record the speaker to
	script  string // file for the transcript; empty for none
	robots  int
	picture bool
	json    bool
	network simrobot.Network

	spoken [][]simrobot.Sentence // sentences that are said to each robot; index: number of the robot, from 0
}

// robotCommand returns the command that simulates robots.
func robotCommand(name string, f *robotFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: "Simulate a robot that behaves like the real firmware",
		Example: `perch-tools robot --say "what time is it"
			perch-tools robot --ota http://perch.local:8003/xiaozhi/ota/ --robots 10 --say "remember that my number is %d"`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.robot(c.Context(), output{c.OutOrStdout(), f.json})
		},
	}
	o, s := &f.options, c.Flags()
	s.StringVar(&o.OTA, "ota", "", "bootstrap `URL` of the appliance; found by mDNS if omitted")
	s.StringVar(&o.MAC, "mac", "02:70:65:72:63:68", "the robot's `MAC` address")
	s.StringArrayVar(&f.say, "say", nil, "`TEXT` to say to the robot; %d is replaced by the robot's number, from 1; repeat for more turns")
	s.StringVar(&f.mic, "mic", "", "WAV `FILE` to play to the microphone, as one turn")
	s.StringVar(&f.speaker, "speaker", "", "WAV `FILE` to record the speaker to")
	s.StringVar((*string)(&o.Mode), "mode", "", "`auto|manual|realtime`; default: auto, or realtime if --aec is not off")
	s.StringVar((*string)(&o.AEC), "aec", "", "`off|device|server`: where the echo is cancelled; default: device in realtime mode, off otherwise")
	s.StringVar(&o.Wake, "wake", "", "`TEXT` of the wake word that wakes the robot, instead of a tap")
	s.IntVar((*int)(&o.Framing), "framing", 0, "binary framing `1|2|3`, instead of the one in the bootstrap")
	s.Func("event", "`NAME=JSON` to send when the channel opens; repeatable", func(text string) error { return addEvent(o, text) })
	s.BoolVar(&o.Upgrades, "upgrade", false, "install and boot the offered firmware")
	s.BoolVar(&o.Crashes, "crash", false, "firmware that --upgrade installs crashes before its check-in")
	s.StringVar((*string)(&o.Transport), "transport", "", "`websocket|mqtt`: fail if the bootstrap selects another transport; default: accept both")
	s.BoolVar(&o.Asleep, "asleep", false, "do not open a channel: only receive messages by MQTT, until interrupted")
	s.Float64Var(&f.network.Loss, "loss", 0, "`FRACTION` of the audio datagrams (with MQTT) that are lost, such as 0.05")
	s.Float64Var(&f.network.Reorder, "reorder", 0, "`FRACTION` of the audio datagrams that are delayed by 75 ms")
	s.DurationVar(&f.network.Jitter, "jitter", 0, "maximum random delay of each audio datagram, a `TIME`")
	s.DurationVar(&f.network.Rebind, "rebind", 0, "`TIME` after which the robot sends from another port")
	s.BoolVar(&o.Stay, "stay", false, "stay connected after the last answer")
	s.StringVar(&o.Firmware, "firmware", "2.2.4", "`"+strings.Join(simrobot.Firmwares(), "|")+"`: the firmware to simulate")
	s.StringVar(&f.script, "transcript", "", "`FILE` to write every frame to, as JSON lines with secrets blanked")
	s.StringVar(&o.FlashFile, "flash", "", "JSON `FILE` that stores the robot's flash between runs; in memory only if omitted")
	s.BoolVar(&f.picture, "picture", false, "show faces and colours on a terminal, and play the conversation on this machine's sound device")
	s.IntVar(&f.robots, "robots", 1, "number `N` of robots; their MAC addresses count up from --mac")
	s.BoolVar(&f.json, "json", false, "print JSON, one object per line")
	return c
}

// robot simulates one or more robots.
func (f *robotFlags) robot(ctx context.Context, out output) (err error) {
	if f.options.OTA == "" {
		if f.options.OTA, err = browse(ctx, out, otaURL); err != nil {
			return err
		}
	}
	if err := f.synthesize(ctx); err != nil {
		return err
	}
	if f.robots > 1 {
		return runMany(ctx, f, out)
	}
	return runOne(ctx, f, out)
}

// check validates the options and fills in defaults.
func (f *robotFlags) check() error {
	switch {
	case len(f.say) > 0 && f.mic != "":
		return command.Usagef("--say and --mic exclude each other: there is only one microphone")
	case f.robots < 1 || f.robots > 1000:
		return command.Usagef("--robots %d is not in the range 1 to 1000", f.robots)
	case f.robots > 1 && (f.speaker != "" || f.script != "" || f.options.FlashFile != "" || f.picture):
		return command.Usagef("--speaker, --transcript, --flash and --picture work for one robot only")
	case f.network.Loss < 0 || f.network.Loss > 1 || f.network.Reorder < 0 || f.network.Reorder > 1 || f.network.Jitter < 0 || f.network.Rebind < 0:
		return command.Usagef("--loss and --reorder are between 0 and 1; --jitter and --rebind are not negative")
	case f.options.Asleep && (len(f.say) > 0 || f.mic != ""):
		return command.Usagef("--asleep excludes --say and --mic")
	case f.json && f.picture:
		return command.Usagef("--picture and --json exclude each other")
	}
	if o := &f.options; o.AEC == "" && o.Mode == xiaozhi.Realtime {
		o.AEC = simrobot.AECDevice // realtime mode requires echo cancellation
	}
	if f.network != (simrobot.Network{}) {
		f.options.Network = &f.network
	}
	f.options.Record = f.speaker != ""
	o := f.options
	o.FlashFile = "" // do not create the file during the check
	if _, err := simrobot.New(o); err != nil {
		return command.Usagef("%w", err)
	}
	return nil
}

// addEvent parses a value of --event and adds the event to the options. Without =JSON the event's
// data is an empty object.
func addEvent(o *simrobot.Options, text string) error {
	name, data, found := strings.Cut(text, "=")
	if !found {
		data = "{}"
	}
	var object map[string]json.RawMessage
	letters := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	if name == "" || !letters || json.Unmarshal([]byte(data), &object) != nil || object == nil {
		return errors.New("an event is NAME=JSON, where NAME consists of a-z, 0-9 and _, and JSON is an object")
	}
	o.Events = append(o.Events, xiaozhi.Event{Name: name, Data: json.RawMessage(data)})
	return nil
}

// synthesize produces the sound for the microphones of all robots. A sentence with the same text for
// several robots is synthesized only once.
func (f *robotFlags) synthesize(ctx context.Context) (err error) {
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

// runOne runs a single robot and prints its observations.
func runOne(ctx context.Context, f *robotFlags, out output) (err error) {
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
	err = ignoreInterruption(ctx, o, r, err)
	if !f.picture {
		printReport(out, r.Stats())
	}
	if f.speaker != "" {
		err = errors.Join(err, writeSound(f.speaker, r))
	}
	return err
}

// startDisplay makes log show a picture, and changes the options o so that this machine plays the
// voices of the person and of the robot. It returns a function that waits until all sound has been
// played.
func (f *robotFlags) startDisplay(ctx context.Context, log *liveLog, o *simrobot.Options) (end func()) {
	log.picture = &picture{screen: command.ScreenOf(log.out.to, os.Getenv)}
	player := playerOf(os.Getenv, exists)
	soundNote := "not played: no sound device, or neither aplay nor pacat"
	if len(player) > 0 {
		soundNote = "played by " + player[0]
	}
	log.line("robot", "sound", soundNote)
	speaker := newLoudspeaker(ctx, player)
	o.Play = speaker.play
	o.Observe = func(h simrobot.Observation) {
		log.observe(h)
		spoken, ok := h.(simrobot.Spoken)
		for _, s := range o.Say {
			if ok && s.Text == spoken.Text {
				speaker.play(voice.MicRate, s.PCM)
				break
			}
		}
	}
	return speaker.close
}

// writeSound writes the sound that the robot played to a WAV file.
func writeSound(path string, r *simrobot.Robot) error {
	rate, pcm := r.Sound()
	if rate == 0 {
		rate = voice.SpeakerRate // the robot played nothing
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the recording of the speaker: %w", err)
	}
	return errors.Join(voice.WriteWAV(file, rate, pcm), file.Close())
}
