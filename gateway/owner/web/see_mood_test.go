package web_test

import (
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/event"
	"perch/firmware-tools/simrobot"
)

// glad returns a glad mood as the appliance publishes it.
func glad() event.Mood {
	return event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Neutral: 0.1, Celebration: 0.9},
		Morphs: event.Morphs{MouthSmile: 0.77, MouthOpen: 0.18, CheekPuff: 0.18}, Head: event.HeadPose{Tilt: 10, Lean: 3, Yaw: -8}}
}

// mouth is a JavaScript expression for the path of the mouth in the visible face.
const mouth = `see.one("stack-chan-face").shadowRoot.querySelector(".mouth").getAttribute("d")`

// seeMood checks that the mood of a robot is shown on its card and in its view, as text and in its face, until the mood is
// neutral again, and that a gesture moves the head.
func seeMood(t *testing.T, c *chromium) {
	config := appliancetest.Config()
	config.Behaviours.Gaze.On = false // gazing would turn the head, and the gesture would start from there
	h := appliancetest.Start(t, config, t.TempDir())
	h.Adopt(kitchenMAC)
	robot := h.StartCompanion(simrobot.Options{Firmware: "dotty", Events: appliancetest.Idle()})
	h.WaitForTools(kitchen)
	b := c.visit(t, h, "")
	for _, v := range []aView{{"", "p-home"}, {"robots/" + kitchen, "p-robot"}} {
		b.view(v.hash, v.element)
		b.sees("stack-chan-face")
		b.until(`see.one("stack-chan-face").dataset.feels !== "celebration"`)
		calm := value[string](b, mouth)
		h.Bus.Publish(kitchen, "", glad())
		b.says("[data-test=mood]", "glad")
		b.until(`see.one("stack-chan-face").dataset.feels === "celebration" && ` + mouth + ` !== ` + quote(calm))
		b.axe("a mood in #/" + v.hash)
		opened := c.comeIn(t, h) // a page that is opened after the event
		opened.open(h.LocalURL() + "#/" + v.hash)
		opened.says("[data-test=mood]", "glad")
		opened.until(`see.one("stack-chan-face").dataset.feels === "celebration"`)
		h.Bus.Publish(kitchen, "", event.Mood{Dominant: "neutral", Face: "neutral", Feelings: event.Feelings{Neutral: 1}})
		b.says("[data-test=mood]", "calm")
		b.until(mouth + ` === ` + quote(calm))
	}
	b.lacks("[data-test=nod]") // the gestures include it
	b.sees("[data-test=gesture-nod]")
	b.click("[data-test=gesture-point]")
	h.Await(robot, "its head points", func(o simrobot.Observation) bool {
		m, is := o.(simrobot.HeadMoved)
		return is && m.Yaw == 40
	})
	b.says("[data-test=action]", "point")
}
