"""Messages going out: accepting, delivering and explaining them."""
