package aituber

import "github.com/gin-gonic/gin"

// Routes mounts the door. Its locks stand before it.
func (s *Server) Routes(r gin.IRouter) {
	r.GET("/ws", func(c *gin.Context) {
		if err := s.programs.Open(c.Writer, c.Request); err != nil {
			_ = c.Error(err)
		}
	})
}
