package appliance

import (
	"cmp"
	"log/slog"

	"perch/cmd/perch/config"
	"perch/gateway/homeassistant"
)

// MQTTUser is the user of the embedded broker where its owner has chosen none.
const MQTTUser = "perch"

// MirrorOptions returns the mirror's options of a configuration. The embedded broker's password
// is left empty where its owner has chosen none.
func MirrorOptions(m config.MQTT) (homeassistant.Options, error) {
	o := homeassistant.Options{Broker: m.Broker, Listen: m.Listen, User: m.User, Base: m.BaseTopic, Prefix: m.DiscoveryPrefix,
		Log: slog.New(slog.DiscardHandler)}
	var err error
	if o.Password, o.CA, err = m.Files(); err != nil {
		return o, err
	}
	if m.Own() {
		o.User = cmp.Or(o.User, MQTTUser)
	}
	return o, nil
}

// checkMirror returns why the mirror cannot be made, a line for each fault.
func checkMirror(m config.MQTT) error {
	o, err := MirrorOptions(m)
	if err != nil {
		return err
	}
	o.ID, o.Password = "00000000", cmp.Or(o.Password, "made at the first start")
	return o.Check()
}
