package admin

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"perch/device"
	"perch/gateway/door"
)

// Character is one as it is shown.
type Character struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description,omitempty"`
	From         string   `json:"from"`            // household, configuration, import or persona
	Brain        string   `json:"brain,omitempty"` // that is asked first; none never answers
	Language     string   `json:"language,omitempty"`
	Voice        string   `json:"voice,omitempty"`
	Tools        []string `json:"tools"` // null is all
	MemoryTokens int      `json:"memory_tokens,omitempty"`
	Skills       []string `json:"skills"`
	Remarks      []string `json:"remarks"` // what it asks for and does not get
	Robots       []string `json:"robots"`  // that have it
}

// casting is what an owner does with characters.
type casting interface {
	List() []Character
	// Import keeps a manifest; an empty id is that of its name.
	Import(id string, manifest []byte) (Character, error)
	Export(id string) ([]byte, error)
	// Who is the id of a robot's.
	Who(robot device.ID, session string) string
}

// mostManifest bounds a manifest, in bytes.
const mostManifest = 1 << 20

// characterRoutes mounts the characters. A manifest is larger than other bodies.
func (d *Door) characterRoutes(r gin.IRouter) {
	r.GET("/characters", answer(http.StatusOK, func(*gin.Context) (any, error) { return d.o.Characters.List(), nil }))
	r.GET("/characters/:id", answer(http.StatusOK, func(c *gin.Context) (any, error) {
		m, err := d.o.Characters.Export(c.Param("id"))
		return json.RawMessage(m), err
	}))
	r.POST("/characters", answer(http.StatusCreated, func(c *gin.Context) (any, error) {
		data, err := io.ReadAll(c.Request.Body)
		if err != nil {
			return nil, unreadable(err)
		}
		if len(data) == 0 {
			return nil, door.BadBody("the manifest of a character is needed")
		}
		return d.o.Characters.Import(c.Query("id"), data)
	}))
}
