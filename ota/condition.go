package ota

import (
	"fmt"

	"perch/health"
)

// Condition returns the condition of the catalogue. It is not OK if a rollout has stopped or an image is
// damaged; the note then describes one of them.
func (f *Firmware) Condition() health.Part { return condition(f.List()) }

// condition returns the result of Condition for the given images.
func condition(images []Shown) health.Part {
	part := health.Part{Name: "firmware", OK: true}.Saying(fmt.Sprintf("%d images", len(images)))
	for _, i := range images {
		if i.Stopped != "" {
			part.OK = false
			part = part.Saying(
				fmt.Sprintf("the rollout of %s has stopped: %s; check these robots, and then set the rollout again or remove the image",
					i.Version, i.Stopped))
		}
		if i.Damaged != "" {
			part.OK = false
			part = part.Saying(fmt.Sprintf("the image %s is not offered: %s", i.Version, i.Damaged))
		}
	}
	return part
}
