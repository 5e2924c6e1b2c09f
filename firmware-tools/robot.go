package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/voice"
)

// robotFlags are the options of perch-tools robot.
type robotFlags struct {
	options simrobot.Options
	say     []string
	mic     string
	speaker string
	script  string
	robots  int
	picture bool
}

// robot simulates one robot, or many.
func robot(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseRobot(args, stdout)
	if err != nil {
		return err
	}
	if f.options.OTA == "" {
		if f.options.OTA, err = browse(ctx, stdout); err != nil {
			return err
		}
	}
	if err := f.speak(ctx); err != nil {
		return err
	}
	if f.robots > 1 {
		return load(ctx, f, stdout)
	}
	return one(ctx, f, stdout)
}

func parseRobot(args []string, stdout io.Writer) (*robotFlags, error) {
	f := &robotFlags{}
	o := &f.options
	s := flag.NewFlagSet("perch-tools robot", flag.ContinueOnError)
	s.SetOutput(io.Discard)
	s.StringVar(&o.OTA, "ota", "", "`URL` of the appliance's bootstrap; without it the appliance is found by browsing")
	s.StringVar(&o.MAC, "mac", "02:70:65:72:63:68", "the robot's `MAC` address")
	s.Func("say", "`TEXT` to say to the robot, where %d stands for the robot's number, from 1; repeat it for more turns", func(text string) error { f.say = append(f.say, text); return nil })
	s.StringVar(&f.mic, "mic", "", "WAV `FILE` that the microphone hears, one turn")
	s.StringVar(&f.speaker, "speaker", "", "WAV `FILE` to write what the speaker plays to")
	s.StringVar((*string)(&o.Mode), "mode", "", "`auto|manual|realtime`; without it auto, or realtime where --aec is not off")
	s.StringVar((*string)(&o.AEC), "aec", "", "`off|device|server`: who cancels the echo; without it device in realtime mode, and else nobody")
	s.StringVar(&o.Wake, "wake", "", "`TEXT` that wakes the robot, in place of a tap")
	s.IntVar((*int)(&o.Framing), "framing", 0, "binary framing `1|2|3`, whatever the bootstrap says")
	s.Func("event", "`NAME=JSON` to send when the channel opens; repeatable", func(text string) error { return addEvent(o, text) })
	s.BoolVar(&o.Upgrades, "upgrade", false, "install the firmware that is offered, and boot it")
	s.BoolVar(&o.Crashes, "crash", false, "what --upgrade installs never gets as far as a check-in")
	s.BoolVar(&o.Stay, "stay", false, "do not hang up when all is said")
	s.StringVar(&o.Firmware, "firmware", "2.2.4", "`"+strings.Join(simrobot.Firmwares(), "|")+"`: as which it behaves")
	s.StringVar(&f.script, "transcript", "", "`FILE` to write every frame to, as JSON lines, secrets blanked")
	s.StringVar(&o.FlashFile, "flash", "", "JSON `FILE` that stands for the robot's flash; without it nothing is kept")
	s.BoolVar(&f.picture, "picture", false, "show the talk as a picture, for people: faces, colours on a terminal, lines as wide as that; and play its sound where there is a device")
	s.IntVar(&f.robots, "robots", 1, "`N` robots; their MACs count up from --mac")
	err := s.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, helped(s, stdout, "")
	}
	if o.AEC == "" && o.Mode == xiaozhi.Realtime {
		o.AEC = simrobot.AECDevice // no robot has that mode without
	}
	if err == nil {
		err = f.check(s.Args())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	o.Record = f.speaker != ""
	return f, nil
}

// check finds what does not go together. Making a robot, without switching it
// on, checks the rest.
func (f *robotFlags) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected %q", rest[0])
	case len(f.say) > 0 && f.mic != "":
		return errors.New("--say and --mic are two sources for one microphone")
	case f.robots < 1 || f.robots > 1000:
		return fmt.Errorf("--robots %d: 1 to 1000", f.robots)
	case f.robots > 1 && (f.speaker != "" || f.script != "" || f.options.FlashFile != "" || f.picture):
		return errors.New("--speaker, --transcript, --flash and --picture are for one robot")
	}
	o := f.options
	o.FlashFile = ""
	_, err := simrobot.New(o)
	return err
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

// speak makes all that the microphones will hear. The options hold what the
// first robot says, as robots that differ say as much.
func (f *robotFlags) speak(ctx context.Context) (err error) {
	o := &f.options
	if o.Wake != "" {
		if o.WakePCM, err = simrobot.Speak(ctx, o.Wake, ""); err != nil {
			return err
		}
	}
	if o.Say, err = f.sentences(ctx, 1); err != nil || f.robots == 1 {
		return err
	}
	first, err := device.ParseID(o.MAC)
	if err != nil {
		return err
	}
	says := map[string][]simrobot.Sentence{macAfter(first, 0): o.Say}
	for i := 1; i < f.robots; i++ {
		if says[macAfter(first, i)], err = f.sentences(ctx, i+1); err != nil {
			return err
		}
	}
	o.SayAs = func(id device.ID) []simrobot.Sentence { return says[string(id)] }
	return nil
}

// sentences are what robot number n's microphone will hear. What has no
// number in it is spoken once.
func (f *robotFlags) sentences(ctx context.Context, n int) ([]simrobot.Sentence, error) {
	if f.mic != "" && n > 1 {
		return f.options.Say, nil
	}
	if f.mic != "" {
		pcm, err := simrobot.ReadWAV(f.mic)
		return []simrobot.Sentence{{Text: filepath.Base(f.mic), PCM: pcm}}, err
	}
	var all []simrobot.Sentence
	for i, text := range f.say {
		said := strings.ReplaceAll(text, "%d", strconv.Itoa(n))
		if n > 1 && said == text {
			all = append(all, f.options.Say[i])
			continue
		}
		pcm, err := simrobot.Speak(ctx, said, "")
		if err != nil {
			return nil, err
		}
		all = append(all, simrobot.Sentence{Text: said, PCM: pcm})
	}
	return all, nil
}

// one runs a single robot and tells what happens.
func one(ctx context.Context, f *robotFlags, stdout io.Writer) (err error) {
	o := f.options
	log := &liveLog{w: stdout, mac: o.MAC, upgrades: o.Upgrades}
	o.Observe = log.observe
	if f.picture {
		defer f.show(ctx, log, &o)()
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
	if err = r.Boot(ctx); err == nil && (len(o.Say) > 0 || len(o.Events) > 0 || o.Wake != "" || o.Stay) {
		err = r.Talk(ctx)
	}
	if o.Stay && ctx.Err() != nil && errors.Is(err, ctx.Err()) && answered(r.Stats()) == len(o.Say) {
		err = nil // it stayed until it was told to go
	}
	if !f.picture {
		report(stdout, r.Stats())
	}
	if f.speaker != "" {
		err = errors.Join(err, writeSound(f.speaker, r))
	}
	return err
}

// show makes a picture of the log and has the talk played, what is said to the
// robot too. It returns what waits until all was played.
func (f *robotFlags) show(ctx context.Context, log *liveLog, o *simrobot.Options) (end func()) {
	log.picture = &picture{screen: screenOf(log.w, os.Getenv)}
	player := playerOf(os.Getenv, exists)
	log.line("robot", "sound", howHeard(player))
	heard := newLoudspeaker(ctx, player)
	o.Play = heard.play
	o.Observe = func(h simrobot.Happening) {
		log.observe(h)
		said, ok := h.(simrobot.Said)
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
		rate = voice.SpeakerRate // nothing was played
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write what the speaker played: %w", err)
	}
	return errors.Join(voice.WriteWAV(file, rate, pcm), file.Close())
}
