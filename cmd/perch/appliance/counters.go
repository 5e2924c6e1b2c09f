package appliance

import (
	"slices"

	"perch/cmd/perch/machine"
	"perch/gateway/owner/admin"
)

// newMetrics returns the counters and gauges of all parts for the owner's metrics.
func (a *Appliance) newMetrics() (counters func() []admin.Counter, gauges []admin.Gauge) {
	fixed := slices.Concat([]admin.Counter{
		{Name: "perch_perceived_dropped_total", Help: "Sensor events that were dropped because a robot sent too many in a second.", Count: a.intake.Dropped},
		{Name: "perch_feed_readers_dropped_total", Help: "Readers of the perception feed that did not read.", Count: a.bridge.Dropped},
		{Name: "perch_robots_dropped_total", Help: "Robots that were disconnected because they did not read what they were sent.",
			Count: func() uint64 { return uint64(a.Talk.Lost()) }},
	}, a.Listeners.Counters(), a.RobotMQTT.Counters(), machine.Counters(a.DB))
	gauges = append(machine.Gauges(a.DB, a.Data),
		admin.Gauge{Name: "perch_robots_mqtt", Help: "Robots that are connected by MQTT.", Read: func() float64 { return float64(a.Talk.Connected()) }},
		admin.Gauge{Name: "perch_robots_waiting", Help: "Robots that wait to be adopted.", Read: func() (n float64) {
			for _, r := range a.Robots.List() {
				n += admin.BoolValue(r.Claim != nil)
			}
			return n
		}},
		admin.Gauge{Name: "perch_robots_strangers", Help: "Robots that nobody has adopted.",
			Read: func() float64 { return float64(a.Robots.Strangers()) }},
		admin.Gauge{Name: "perch_mqtt_connected", Help: "1 while Perch is connected to the MQTT broker, or if MQTT is turned off.",
			Read: func() float64 { return admin.BoolValue(a.Mirror.Condition().OK && !a.Mirror.Status().Connecting) }})
	return func() []admin.Counter { return slices.Concat(fixed, a.Agents.Engines.Engines().Counters()) }, gauges
}
