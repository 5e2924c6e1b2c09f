package appliance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"perch/agent/notice"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/engines"
	"perch/cmd/perch/machine"
	"perch/cmd/perch/robots"
	"perch/device"
	"perch/gateway/robot"
	"perch/ota"
	"perch/perception"
	"perch/store"
	"perch/voice/music"
	"perch/voice/sounds"
)

// newRobots makes the server that robots connect to, the robots' behaviours and sounds,
// their firmware, and the service for their check-ins.
func (a *Appliance) newRobots(c *config.Config) (err error) {
	rules := c.BehaviourRules(func(string, error) {}) // the check of the configuration has reported faults
	a.behaviours, err = perception.NewBehaviours(perception.Options{Tuning: c.Behaviours, Rules: rules, Gestures: a.gestures, Zone: a.zone,
		Bus: a.Bus, Phrase: a.Agents.PhraseFor, Log: a.Log})
	if err != nil {
		return err
	}
	a.sounds = sounds.Open(datadir.Sounds(a.Data))
	a.Talk = robot.NewServer(a.talkOptions(c, a.Agents.Engines.Engines()))
	a.closers = append(a.closers, a.Talk.Close)
	a.control = robots.Control{Server: a.Talk, Behaviours: a.behaviours}
	a.OwnerRobots = robots.NewOwnerRegistry(robots.Options{Registry: a.Robots, Server: a.Talk, Senses: a.Senses, Mind: a.Agents.Mind, Memory: a.Memory, Bus: a.Bus,
		DB: a.DB, Zone: a.zone, Check: a.Agents.Characters.Check})
	a.warmer = engines.NewWarmer(&a.Agents.Engines, a.Talk.Prepare, a.Log)
	key, err := c.Firmware.VerificationKey()
	if err != nil {
		return fmt.Errorf("firmware.public_key: %w", err)
	}
	a.Firmware, err = ota.OpenFirmware(ota.FirmwareOptions{Dir: filepath.Join(a.Data, "firmware"),
		Images: store.NewTable[ota.Record](a.DB, "firmware"), Units: store.NewTable[ota.Unit](a.DB, "firmware-robots"),
		Key: a.Identity.TokenKey, Signer: key, Bus: a.Bus, Zone: a.zone, Log: a.Log,
		Stopped: func(version string, failed, first int) {
			words := a.Agents.Engines.Engines().Words(a.Config().Language.List()...)
			text := words.Message("firmware.stopped", "version", version, "failed", failed, "first", first)
			if _, err := a.Agents.Notifier.Notify(notice.Notification{Text: text, Speak: true}); err != nil {
				a.Log.Error("a notification was not stored", "text", text, "err", err)
			}
		}})
	if err != nil {
		return err
	}
	mqtt := ota.MQTT{}
	if port := a.RobotMQTT.Port(); port > 0 {
		mqtt = ota.MQTT{Port: port, Topic: robot.MQTTTopic}
	}
	a.ota = ota.New(ota.Options{Firmware: a.Firmware, Robots: a.OwnerRobots, Bus: a.Bus, Zone: a.zone, PublicURL: c.PublicURL,
		Transport: device.Transport(c.Robots.Transport), MQTT: mqtt, Framing: c.Robots.Framing, Earliest: machine.Earliest(a.options.Built),
		Language: func() string { return a.Config().Language.First() }, Log: a.Log})
	return nil
}

// talkOptions returns the options of the server that robots connect to. Apply replaces them.
func (a *Appliance) talkOptions(c *config.Config, e *engines.Set) robot.Options {
	return robot.Options{
		Robots: a.Robots, RecordRefusal: func(r *http.Request, err error) { a.ota.RecordRefusal(r, err) }, Bus: a.Bus, Senses: a.intake, Mind: a.Agents.Mind, Records: a.Records, Sounds: a.sounds,
		Commands: a.commands,
		Moves: func(id device.ID, tool string, arguments map[string]any) {
			a.behaviours.RecordToolCall(id, tool, arguments)
		},
		Greet: c.Robots.Greeting, UserTools: c.Robots.UserTools, PublicURL: c.PublicURL,
		Recognizer: e.Hearing(), Synthesizer: e.Synthesizers, Hold: e.Acquire, Voice: e.Voice(),
		Speech: a.Agents.Characters.Speech(), Character: a.Agents.Characters.Of,
		Phrases: e.Phrase, Languages: c.Language.List(), Music: music.NewLibrary(c.MusicSources()),
		Ending: e.Ending, SpeaksAhead: !e.BillsSpeech(),
		Loudness: &a.loudness,
		Quiet:    a.isQuiet,
		Waits:    a.Notices.Waits,
		Patience: c.Patience(), Zone: a.zone, Idle: time.Duration(c.Robots.Idle), Silence: time.Duration(c.Speech.Silence),
		Version: a.options.Version, Log: a.Log,
	}
}

// isQuiet reports whether a time is within the configured quiet hours.
func (a *Appliance) isQuiet(now time.Time) bool {
	return a.Config().Behaviours.Quiet.Hours.Contains(now.In(a.zone))
}
