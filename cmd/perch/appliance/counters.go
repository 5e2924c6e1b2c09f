package appliance

import (
	"os"
	"strings"

	"perch/gateway/admin"
	"perch/store"
)

// counters returns what parts count themselves.
func (a *Appliance) counters() []admin.Counter {
	return append([]admin.Counter{
		{Name: "perch_perceived_dropped_total", Help: "Events beyond what a robot may sense in a second.", Count: a.intake.Dropped},
		{Name: "perch_feed_readers_dropped_total", Help: "Readers of the perception feed that did not read.", Count: a.bridge.Dropped},
		{Name: "perch_robots_dropped_total", Help: "Robots let go because they did not read what they were sent.",
			Count: func() uint64 { return uint64(a.Talk.Lost()) }},
		{Name: "perch_connections_kept_open_total", Help: "Connections that were kept open after their last answer, for the robot to close.",
			Count: func() uint64 { return a.Listeners.Lingering.Counts().Kept }},
		{Name: "perch_connections_kept_open_timeouts_total", Help: "Of those, connections that the robot had not closed within a second.",
			Count: func() uint64 { return a.Listeners.Lingering.Counts().TimedOut }},
		{Name: "perch_connections_not_kept_open_total", Help: "Connections closed at once, for too many were kept open.",
			Count: func() uint64 { return a.Listeners.Lingering.Counts().Untimely }},
		{Name: "perch_datagrams_dropped_total",
			Help:  "Datagrams of robots' sound that belonged to no talk, came twice, were forged, or came too fast.",
			Count: a.RobotMQTT.Dropped},
		{Name: "perch_store_commits_total", Help: "Writes of the database that reached the disk.", Count: a.DB.Commits},
	}, a.engines.get().counters()...)
}

// counters returns the failures of engines, by list and kind: how many of one kind a list names
// is not counted.
func (e *engines) counters() []admin.Counter {
	var all []admin.Counter
	named := map[string][]*Engine{}
	for _, n := range e.All {
		kind, _, _ := strings.Cut(strings.TrimPrefix(n.Part, n.List+" "), " ") // without its number
		if n.List == "tools" {
			kind = "mcp" // its name is whatever its owner likes
		}
		key := n.List + " " + kind
		if named[key] == nil {
			all = append(all, admin.Counter{
				Name: "perch_engine_failures_total", Help: "Failures of engines, when they were used or looked at, by list and kind.",
				Labels: map[string]string{"list": n.List, "kind": kind},
				Count: func() (sum uint64) {
					for _, n := range named[key] {
						sum += n.Failures()
					}
					return sum
				},
			})
		}
		named[key] = append(named[key], n)
	}
	return all
}

// gauges returns values of parts, which are read on request.
func (a *Appliance) gauges() []admin.Gauge {
	truth := func(yes bool) float64 {
		if yes {
			return 1
		}
		return 0
	}
	return []admin.Gauge{
		{Name: "perch_store_bytes", Help: "Size of the database's file.", Read: func() float64 {
			info, err := os.Stat(a.DB.Path())
			if err != nil {
				return 0
			}
			return float64(info.Size())
		}},
		{Name: "perch_store_failing", Help: "1 while the last write of the database has failed, or it cannot be read.",
			Read: func() float64 { return truth(a.DB.Err() != nil || a.DB.Readable() != nil) }},
		{Name: "perch_disk_free_bytes", Help: "Room that is left where the data is.", Read: func() float64 {
			free, err := store.FreeSpace(a.Data)
			if err != nil {
				return 0
			}
			return float64(free)
		}},
		{Name: "perch_robots_mqtt", Help: "Robots that are connected by MQTT.", Read: func() float64 { return float64(a.Talk.Connected()) }},
		{Name: "perch_robots_waiting", Help: "Robots that wait to be adopted.", Read: func() (n float64) {
			for _, r := range a.Robots.List() {
				n += truth(r.Claim != nil)
			}
			return n
		}},
		{Name: "perch_robots_strangers", Help: "Robots that nobody has adopted.", Read: func() float64 { return float64(a.Robots.Strangers()) }},
		{Name: "perch_mqtt_connected", Help: "1 while the MQTT broker is told, or MQTT is turned off.",
			Read: func() float64 { return truth(a.Mirror.Condition().OK && !a.Mirror.Status().Connecting) }},
	}
}
